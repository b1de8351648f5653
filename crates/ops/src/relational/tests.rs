//! What a backend without kernels runs, against the kernels of the CPU backends; and what backward keeps.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, NdArray};
use burn::tensor::{Shape, TensorData};
use burn_gnn_graph::Relation;

use super::RelationalIndex;
use super::operator::{Relational, RelationalGrad};
use crate::Stream;
use crate::cpu::Host;
use crate::fallback_tests::compare_operator;
use crate::operator::GnnBackend;
use burn_gnn_plan::RelationalPlan;

type Ad = Autodiff<Flex, NoCheckpointing>;

fn numbers(seed: u64, n: usize) -> Vec<f64> {
    let stream = Stream::new(seed, "relational", 0);
    (0..n as u64).map(|i| 2.0 * stream.uniform(i, 0) - 1.0).collect()
}

fn tensor<B: Host>(seed: u64, shape: &Shape) -> FloatTensor<B> {
    B::from_floats(numbers(seed, shape.num_elements()), shape.clone())
}

fn indices() -> Vec<RelationalIndex> {
    let edges = |src, dst, n: u32| {
        let relation =
            Relation::from_coo(src, dst, (0..n).map(|i| i * 7 % src as u32).collect(), (0..n).map(|i| i * i % dst as u32).collect());
        RelationalIndex::new(&relation.unwrap(), &(0..n).map(|i| i * 5 % 4).collect::<Vec<_>>(), 6)
    };
    let some = edges(6, 5, 40);
    vec![some.mean(), some, edges(3, 70, 200), edges(2, 2, 0)]
}

fn compare<B: Host>(backend: &str) {
    for index in indices() {
        for shape in [&[3usize, 4][..], &[4, 3], &[2, 3, 2], &[0, 2], &[2, 0], &[20, 17]] {
            let plan = RelationalPlan::new(&index, shape).unwrap();
            let edges = Shape::from(vec![index.relation().num_edges()]);
            let (x, w) = (|| tensor::<B>(1, &plan.x_shape()), || tensor::<B>(2, &plan.weight_shape()));
            let grad = || tensor::<B>(3, &plan.out_shape());
            let gradient = |x, weight, norm, scaled| RelationalGrad { plan: plan.clone(), x, weight, norm, scaled };
            for scaled in [false, true] {
                let norm = || scaled.then(|| tensor::<B>(4, &edges));
                let what = |name: &str| format!("{backend}, {:?}, {shape:?}, norm {scaled}, {name}", index.relation());
                let inputs = |floats: Vec<FloatTensor<B>>| floats.into_iter().chain(norm()).collect();
                compare_operator::<B, _>(&what("out"), &Relational { plan: plan.clone(), scaled }, inputs(vec![x(), w()]));
                compare_operator::<B, _>(&what("d x, d w"), &gradient(true, true, false, scaled), inputs(vec![grad(), x(), w()]));
                compare_operator::<B, _>(&what("d x"), &gradient(true, false, false, scaled), inputs(vec![grad(), w()]));
                compare_operator::<B, _>(&what("d w"), &gradient(false, true, false, scaled), inputs(vec![grad(), x()]));
            }
            compare_operator::<B, _>(&format!("{backend}, d norm"), &gradient(false, false, true, false), vec![grad(), x(), w()]);
        }
    }
}

#[test]
fn fallback_on_cpu_backends() {
    compare::<Flex>("flex");
    compare::<NdArray>("ndarray");
}

/// Whichever way the costs say, the other one has the same result.
/// After the call the operands are dropped; whose buffers are still held is what was kept.
#[test]
fn keeps_only_what_a_tracked_input_needs() {
    let plan = RelationalPlan::new(&indices()[1], &[2, 2]).unwrap();
    let edges = Shape::from(vec![plan.index().relation().num_edges()]);
    for bits in 0..16u32 {
        let [x_tracked, w_tracked, norm_tracked, scaled] = [1, 2, 4, 8].map(|b| bits & b != 0);
        if norm_tracked && !scaled {
            continue;
        }
        let leaf = |shape: &Shape, tracked: bool| {
            let data = vec![1.0f32; shape.num_elements()];
            let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(data, shape.clone())));
            if tracked { x.require_grad() } else { x }
        };
        let (x, w) = (leaf(&plan.x_shape(), x_tracked), leaf(&plan.weight_shape(), w_tracked));
        let inputs: Vec<_> = [x, w].into_iter().chain(scaled.then(|| leaf(&edges, norm_tracked))).collect();
        let buffers: Vec<_> = inputs.iter().map(|t| t.primitive().data_arc()).collect();
        let [out] = Ad::run(inputs.into(), Relational { plan: plan.clone(), scaled }).take();
        let held: Vec<_> = buffers.into_iter().map(|b| Arc::strong_count(&b) > 1).collect();
        let want = [w_tracked || norm_tracked, x_tracked || norm_tracked, x_tracked || w_tracked];
        assert_eq!(held, want[..held.len()], "x {x_tracked}, w {w_tracked}, norm {norm_tracked}, scaled {scaled}");
        assert_eq!(out.is_tracked(), x_tracked || w_tracked || norm_tracked);
    }
}

#[test]
#[should_panic(expected = "the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let plan = RelationalPlan::new(&indices()[1], &[2, 2]).unwrap();
    let ones = |shape: Shape| FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32; shape.num_elements()], shape)));
    let inputs = vec![ones(plan.out_shape()).require_grad(), ones(plan.weight_shape())];
    let _ = Ad::run(inputs.into(), RelationalGrad { plan, x: true, weight: false, norm: false, scaled: false });
}
