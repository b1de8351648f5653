//! What a backend without kernels runs, against the kernels of the CPU backends; and what backward keeps.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, NdArray};
use burn::tensor::{Shape, TensorData};

use super::operator::TypedGrad;
use crate::cpu::Host;
use crate::fallback_tests::compare_operator;
use crate::operator::GnnBackend;
use crate::segment::{Segments, TypeIndex};
use burn_gnn_plan::TypedPlan;

type Ad = Autodiff<Flex, NoCheckpointing>;

fn tensor<B: Host>(seed: u64, shape: &Shape) -> FloatTensor<B> {
    let stream = crate::Stream::new(seed, "typed", 0);
    B::from_floats((0..shape.num_elements() as u64).map(|i| 2.0 * stream.uniform(i, 0) - 1.0).collect::<Vec<f64>>(), shape.clone())
}

fn plans(input: usize, output: usize) -> [TypedPlan; 3] {
    let types: Vec<u8> = (0..300u32).map(|i| (i * i % 5) as u8).collect();
    [
        TypedPlan::segments(&Segments::from_lengths(&[3, 0, 200, 1]), input, output),
        TypedPlan::types(&TypeIndex::new(&types, 6), input, output),
        TypedPlan::segments(&Segments::from_lengths(&[0, 0]), input, output),
    ]
    .map(Result::unwrap)
}

fn compare<B: Host>(backend: &str) {
    for (input, output) in [(3, 4), (4, 3), (80, 70), (0, 2), (2, 0), (17, 33)] {
        for plan in plans(input, output) {
            let (a, b, grad) =
                (|| tensor::<B>(1, &plan.a_shape()), || tensor::<B>(2, &plan.b_shape()), || tensor::<B>(3, &plan.out_shape()));
            let what = |name| format!("{backend}, {input} x {output}, {name}");
            compare_operator::<B, _>(&what("out"), &plan, vec![a(), b()]);
            compare_operator::<B, _>(&what("d a"), &TypedGrad::Rows(plan.clone()), vec![grad(), b()]);
            compare_operator::<B, _>(&what("d b"), &TypedGrad::Matrices(plan.clone()), vec![grad(), a()]);
        }
    }
}

#[test]
fn fallback_on_cpu_backends() {
    compare::<Flex>("flex");
    compare::<NdArray>("ndarray");
}

fn leaf(shape: Shape, tracked: bool) -> FloatTensor<Ad> {
    let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32; shape.num_elements()], shape)));
    if tracked { x.require_grad() } else { x }
}

/// After the call the operands are dropped; whose buffers are still held is what was kept.
#[test]
fn keeps_only_what_a_tracked_input_needs() {
    for (a_tracked, b_tracked) in [(true, true), (true, false), (false, true), (false, false)] {
        let plan = plans(2, 2)[0].clone();
        let (a, b) = (leaf(plan.a_shape(), a_tracked), leaf(plan.b_shape(), b_tracked));
        let buffers = [&a, &b].map(|t| t.primitive().data_arc());
        let [out] = Ad::run(vec![a, b].into(), plan).take();
        assert_eq!(buffers.map(|b| Arc::strong_count(&b) > 1), [b_tracked, a_tracked]);
        assert_eq!(out.is_tracked(), a_tracked || b_tracked);
    }
}

#[test]
#[should_panic(expected = "the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let plan = plans(2, 2)[0].clone();
    let _ = Ad::run(vec![leaf(plan.out_shape(), false), leaf(plan.a_shape(), true)].into(), TypedGrad::Matrices(plan));
}
