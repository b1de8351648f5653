//! Tests that GSpMM computes only the gradients of tracked operands.

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{DType, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce};

use crate::check::check_dtype;
use crate::gspmm::general::NAME;
use crate::gspmm::operator::{GRADIENTS, Gspmm, GspmmGrad};
use crate::operator::GnnBackend;

type Ad = Autodiff<Flex, NoCheckpointing>;

fn leaf(rows: usize, tracked: bool) -> FloatTensor<Ad> {
    let data: Vec<f32> = (0..2 * rows).map(|i| i as f32 + 1.0).collect();
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(data, [rows, 2])));
    if tracked { x.require_grad() } else { x }
}

fn plan(op: BinaryOp, reduce: Reduce) -> GspmmPlan {
    let relation = Relation::from_coo(3, 2, vec![0, 1, 2, 2], vec![0, 0, 1, 1]).unwrap();
    GspmmPlan::new(&relation, op, reduce, &[2], &[2]).unwrap()
}

fn run(
    op: BinaryOp,
    reduce: Reduce,
    lhs: FloatTensor<Ad>,
    rhs: FloatTensor<Ad>,
) -> FloatTensor<Ad> {
    Ad::run(vec![lhs, rhs].into(), Gspmm::new(plan(op, reduce))).read().float()
}

#[test]
fn an_untracked_parent_costs_no_gradient() {
    for reduce in Reduce::ALL {
        for (tracked, want) in [((true, true), 2), ((true, false), 1), ((false, true), 1)] {
            let (lhs, rhs) = (leaf(3, tracked.0), leaf(4, tracked.1));
            let before = GRADIENTS.get();
            let grads = run(BinaryOp::Div, reduce, lhs.clone(), rhs.clone()).backward();
            assert_eq!(GRADIENTS.get() - before, want, "{reduce:?}, tracked {tracked:?}");
            assert_eq!((lhs.grad(&grads).is_some(), rhs.grad(&grads).is_some()), tracked);
        }
    }
}

#[test]
fn untracked_gradients_pass_through() {
    let op = GspmmGrad { plan: plan(BinaryOp::Add, Reduce::Sum), wants: [true, false] };
    let [grad] = Ad::run(vec![leaf(2, false)].into(), op).take();
    assert_eq!(grad.into_primitive().as_slice::<f32>().unwrap(), [1.0, 2.0, 1.0, 2.0, 6.0, 8.0]);
}

#[test]
fn element_types_without_a_kernel() {
    for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        assert_eq!(check_dtype(NAME, "lhs", dtype), Ok(()));
    }
    let text = check_dtype(NAME, "lhs", DType::Flex32).unwrap_err().to_string();
    assert_eq!(
        text,
        "gspmm: `lhs` has element type Flex32, expected F32, F64, F16 or BF16; cast it"
    );
}
