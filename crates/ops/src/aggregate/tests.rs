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

use super::{AggregateBackend, AggregateOptions, AggregatePlan, DegreeScale, reference};
use crate::Activation;
use crate::fallback_tests::{assert_near, graphs, numbers};

const ACTIVATIONS: [Activation; 4] = [Activation::None, Activation::Relu, Activation::LeakyRelu(0.2), Activation::Elu(0.8)];

fn plan(relation: &Relation, width: usize, normed: bool, activation: Activation, weighted: bool, biased: bool) -> AggregatePlan {
    let scale = |degrees: Vec<u32>, power| normed.then(|| DegreeScale::new(&degrees, power));
    let (source, destination) = (scale(relation.out_degrees().collect(), -0.5), scale(relation.in_degrees().collect(), -0.7));
    AggregatePlan::new(relation, width, AggregateOptions { source, destination, activation }, weighted, biased)
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

fn compare<B: AggregateBackend>(backend: &str) {
    let device = Device::<B>::default();
    every(|what, plan| {
        let what = format!("{backend}, {what}");
        let line = |seed, n: usize| numbers::<B>(seed, &Shape::from([n]), &device);
        let x = || numbers::<B>(1, &plan.in_shape(), &device);
        let weight = || line(2, if plan.weighted() { plan.relation().num_edges() } else { 0 });
        let bias = || line(3, if plan.biased() { plan.width() } else { 0 });
        let out = B::aggregate(x(), weight(), bias(), plan.clone());
        assert_near::<B>(&what, out.clone(), reference::forward::<B>(x(), weight(), bias(), &plan));
        let grad = || numbers::<B>(4, &plan.out_shape(), &device);
        // As backward keeps them: nothing in the place of what it does not read.
        let kept = || if plan.activation() == Activation::None { line(0, 0) } else { out.clone() };
        for wants_x in [true, false] {
            let weight = || if wants_x { weight() } else { line(0, 0) };
            let (a, b) = B::aggregate_grad(grad(), kept(), weight(), plan.clone(), wants_x);
            let (c, d) = reference::gradient::<B>(grad(), kept(), weight(), &plan, wants_x);
            assert_near::<B>(&format!("{what}, d x {wants_x}"), a, c);
            assert_near::<B>(&format!("{what}, d bias, d x {wants_x}"), b, d);
        }
        if plan.weighted() {
            let a = B::aggregate_grad_weight(grad(), kept(), x(), plan.clone());
            assert_near::<B>(&format!("{what}, d weight"), a, reference::gradient_of_weight::<B>(grad(), kept(), x(), &plan));
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
            let weight = leaf(Shape::from([if weighted { relation.num_edges() } else { 0 }]), weight_tracked);
            let bias = leaf(Shape::from([3]), bias_tracked);
            let buffers = [&x, &weight, &bias].map(|t| t.primitive().data_arc());
            let out = Ad::aggregate(x, weight, bias, plan);
            let held = buffers.map(|b| Arc::strong_count(&b) > 1);
            let what = format!("{activation:?}, x {x_tracked}, weight {weight_tracked}, bias {bias_tracked}, weighted {weighted}");
            assert_eq!(held, [weight_tracked, weighted && x_tracked, false], "{what}");
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
    let _ = Ad::aggregate_grad(leaf(plan.out_shape(), true), leaf(Shape::from([0]), false), leaf(Shape::from([0]), false), plan, true);
}

#[test]
#[should_panic(expected = "weighted_aggregate: the gradient of a gradient is not implemented")]
fn second_order_of_weights_is_refused() {
    let plan = plan(&graphs()[0], 2, false, Activation::None, true, false);
    let _ = Ad::aggregate_grad_weight(leaf(plan.out_shape(), false), leaf(Shape::from([0]), false), leaf(plan.in_shape(), true), plan);
}
