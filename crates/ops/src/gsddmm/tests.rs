//! What GSDDMM keeps for backward, and which gradients it computes.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::TensorData;
use burn_gnn_graph::Relation;

use super::{GsddmmGrad, GsddmmPlan, SddmmOp, Target};
use crate::gspmm::Side;
use crate::operator::GnnBackend;

type Ad = Autodiff<Flex, NoCheckpointing>;

fn leaf(rows: usize, tracked: bool) -> FloatTensor<Ad> {
    let data: Vec<f32> = (0..2 * rows).map(|i| i as f32 + 1.0).collect();
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(data, [rows, 2])));
    if tracked { x.require_grad() } else { x }
}

fn plan(op: SddmmOp) -> GsddmmPlan {
    let relation = Relation::from_coo(3, 2, vec![0, 1, 2, 2], vec![0, 0, 1, 1]).unwrap();
    GsddmmPlan::new(&relation, op, [Target::Src, Target::Dst], [&[2], &[2]]).unwrap()
}

/// After the call the operands are dropped; whose buffers are still held is what was kept.
#[test]
fn keeps_only_what_a_tracked_input_needs() {
    use SddmmOp::{Add, Div, Dot, Mul, Sub};
    for (op, tracked, kept) in [
        (Add, (true, true), (false, false)),
        (Sub, (true, true), (false, false)),
        (Mul, (true, true), (true, true)),
        (Mul, (true, false), (false, true)),
        (Mul, (false, true), (true, false)),
        (Mul, (false, false), (false, false)),
        (Dot, (true, true), (true, true)),
        (Dot, (true, false), (false, true)),
        (Dot, (false, true), (true, false)),
        (Div, (true, true), (true, true)),
        (Div, (true, false), (false, true)),
        (Div, (false, true), (true, true)),
        (Div, (false, false), (false, false)),
    ] {
        let (lhs, rhs) = (leaf(3, tracked.0), leaf(2, tracked.1));
        let (a, b) = (lhs.primitive().data_arc(), rhs.primitive().data_arc());
        let out = Ad::run(vec![lhs, rhs].into(), plan(op));
        let held = (Arc::strong_count(&a) > 1, Arc::strong_count(&b) > 1);
        assert_eq!(held, kept, "{op:?}, tracked {tracked:?}");
        drop(out);
    }
}

#[test]
fn copies_keep_nothing() {
    let x = leaf(3, true);
    let data = x.primitive().data_arc();
    let [out] = Ad::run(vec![x].into(), plan(SddmmOp::CopyLhs)).take();
    assert!(out.is_tracked());
    assert_eq!(Arc::strong_count(&data), 1);
}

#[test]
fn an_untracked_parent_gets_no_gradient() {
    for tracked in [(true, true), (true, false), (false, true)] {
        let (lhs, rhs) = (leaf(3, tracked.0), leaf(2, tracked.1));
        let grads = Ad::run(vec![lhs.clone(), rhs.clone()].into(), plan(SddmmOp::Div)).read().float().backward();
        assert_eq!((lhs.grad(&grads).is_some(), rhs.grad(&grads).is_some()), tracked);
    }
}

#[test]
#[should_panic(expected = "gsddmm: the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let _ = Ad::run(vec![leaf(4, true)].into(), GsddmmGrad { plan: plan(SddmmOp::Add), side: Side::Lhs });
}
