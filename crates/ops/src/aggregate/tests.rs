//! What a backend without kernels runs, against the kernels of the CPU backends; what backward keeps; gradients of
//! gradients.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::{Device, FloatTensor};
use burn::backend::{Autodiff, Flex, NdArray};
use burn::tensor::{Shape, TensorData};
use burn_gnn_graph::Relation;

use super::operator::{AggregateGrad, AggregateGradWeight};
use super::{AggregateOptions, AggregatePlan, DegreeScale};
use crate::Activation;
use crate::fallback_tests::{compare_operator, graphs, numbers};
use crate::operator::GnnBackend;

const ACTIVATIONS: [Activation; 4] = [Activation::None, Activation::Relu, Activation::LeakyRelu(0.2), Activation::Elu(0.8)];

fn plan(relation: &Relation, width: usize, normed: bool, activation: Activation, weighted: bool, biased: bool) -> AggregatePlan {
    let scale = |degrees: Vec<u32>, power| normed.then(|| DegreeScale::new(&degrees, power));
    let (source, destination) = (scale(relation.out_degrees().collect(), -0.5), scale(relation.in_degrees().collect(), -0.7));
    AggregatePlan::new(relation, width, AggregateOptions { source, destination, activation }, weighted, biased).unwrap()
}

fn every(mut f: impl FnMut(&str, AggregatePlan)) {
    for (n, relation) in graphs().iter().enumerate() {
        for width in [1, 3, 19] {
            for activation in ACTIVATIONS {
                for bits in 0..8u32 {
                    let [normed, weighted, biased] = [1, 2, 4].map(|b| bits & b != 0);
                    let what = format!("graph {n}, width {width}, {activation:?}, normed {normed}, weighted {weighted}, biased {biased}");
                    f(&what, plan(relation, width, normed, activation, weighted, biased));
                }
            }
        }
    }
}

fn compare<B: GnnBackend>(backend: &str) {
    let device = Device::<B>::default();
    every(|what, plan| {
        let what = format!("{backend}, {what}");
        let line = |seed, n: usize| numbers::<B>(seed, &Shape::from([n]), &device);
        let x = || numbers::<B>(1, &plan.in_shape(), &device);
        let weight = || plan.weighted().then(|| line(2, plan.relation().num_edges()));
        let bias = || plan.biased().then(|| line(3, plan.width()));
        let [out] = compare_operator::<B, _>(&what, &plan, std::iter::once(x()).chain(weight()).chain(bias()).collect()).take();
        let grad = || numbers::<B>(4, &plan.out_shape(), &device);
        // As backward keeps them.
        let kept = || (plan.activation() != Activation::None).then(|| out.clone());
        for (x, bias) in [(true, true), (true, false), (false, true)] {
            if bias && !plan.biased() {
                continue;
            }
            let inputs = std::iter::once(grad()).chain(kept()).chain(weight().filter(|_| x)).collect();
            compare_operator::<B, _>(&format!("{what}, d x {x}, d bias {bias}"), &AggregateGrad { plan: plan.clone(), x, bias }, inputs);
        }
        if plan.weighted() {
            let inputs = std::iter::once(grad()).chain(kept()).chain([x()]).collect();
            compare_operator::<B, _>(&format!("{what}, d weight"), &AggregateGradWeight { plan: plan.clone() }, inputs);
        }
    });
}

#[test]
fn fallbacks_are_the_kernels() {
    compare::<Flex>("flex");
    compare::<NdArray>("ndarray");
}

type Ad = Autodiff<Flex, NoCheckpointing>;

fn leaf(shape: Shape, tracked: bool) -> FloatTensor<Ad> {
    let data = TensorData::new((0..shape.num_elements()).map(|i| (i as f32).sin()).collect::<Vec<_>>(), shape);
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(data));
    if tracked { x.require_grad() } else { x }
}

/// After the call the operands are dropped; whose buffers are still held is what was kept.
#[test]
fn keeps_only_what_a_tracked_input_needs() {
    let relation = &graphs()[0];
    for activation in ACTIVATIONS {
        for bits in 0..16u32 {
            let [x_tracked, weight_tracked, bias_tracked, weighted] = [1, 2, 4, 8].map(|b| bits & b != 0);
            if weight_tracked && !weighted {
                continue;
            }
            let plan = plan(relation, 3, true, activation, weighted, true);
            let x = leaf(plan.in_shape(), x_tracked);
            let weight = weighted.then(|| leaf(Shape::from([relation.num_edges()]), weight_tracked));
            let inputs: Vec<_> = std::iter::once(x).chain(weight).chain([leaf(Shape::from([3]), bias_tracked)]).collect();
            let buffers: Vec<_> = inputs.iter().map(|t| t.primitive().data_arc()).collect();
            let [out] = Ad::run(inputs.into(), plan).take();
            let held: Vec<_> = buffers.into_iter().map(|b| Arc::strong_count(&b) > 1).collect();
            let what = format!("{activation:?}, x {x_tracked}, weight {weight_tracked}, bias {bias_tracked}, weighted {weighted}");
            assert_eq!(held, if weighted { vec![weight_tracked, x_tracked, false] } else { vec![false; 2] }, "{what}");
            let tracked = x_tracked || weight_tracked || bias_tracked;
            let data = out.primitive().data_arc();
            // The tensor, this handle, and what is kept.
            let keeps = tracked && activation != Activation::None;
            assert_eq!(Arc::strong_count(&data), if keeps { 3 } else { 2 }, "{what}: result");
            assert_eq!(out.is_tracked(), tracked, "{what}");
        }
    }
}

#[test]
#[should_panic(expected = "weighted_aggregate: the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let plan = plan(&graphs()[0], 2, false, Activation::None, false, false);
    let _ = Ad::run(vec![leaf(plan.out_shape(), true)].into(), AggregateGrad { plan, x: true, bias: false });
}

#[test]
#[should_panic(expected = "weighted_aggregate: the gradient of a gradient is not implemented")]
fn second_order_of_weights_is_refused() {
    let plan = plan(&graphs()[0], 2, false, Activation::None, true, false);
    let inputs = vec![leaf(plan.out_shape(), false), leaf(plan.in_shape(), true)];
    let _ = Ad::run(inputs.into(), AggregateGradWeight { plan });
}
