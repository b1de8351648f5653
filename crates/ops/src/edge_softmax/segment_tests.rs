//! What a backend without kernels runs, against the kernels of the CPU backends; and what backward keeps.
// Burn has deprecated its ndarray backend; people still use it.
#![allow(deprecated)]

use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex, NdArray};
use burn::tensor::{Shape, TensorData};

use burn_gnn_plan::Segments;

use super::{SoftmaxGrad, SoftmaxPlan};
use crate::cpu::Host;
use crate::fallback_tests::compare_operator;
use crate::operator::{GnnBackend, Operator};

type Ad = Autodiff<Flex, NoCheckpointing>;

fn tensor<B: Host>(seed: u64, shape: &Shape) -> FloatTensor<B> {
    let stream = crate::Stream::new(seed, "segment", 0);
    B::from_floats((0..shape.num_elements() as u64).map(|i| 9.0 * stream.uniform(i, 0)).collect::<Vec<f64>>(), shape.clone())
}

fn compare<B: Host>(backend: &str) {
    for lengths in [&[3usize, 0, 20, 1][..], &[], &[0, 0], &[0, 4, 0]] {
        let segments = Segments::from_lengths(lengths);
        for features in [&[][..], &[1], &[7], &[2, 9], &[0]] {
            let plan = SoftmaxPlan::segments("segment_softmax", &segments, features).unwrap();
            let (x, grad) = (|| tensor::<B>(1, &plan.shape()), || tensor::<B>(2, &plan.shape()));
            let what = format!("{backend}, {lengths:?}, {features:?}");
            compare_operator::<B, _>(&what, &plan, vec![x()]);
            compare_operator::<B, _>(&format!("{what}, d x"), &SoftmaxGrad(plan.clone()), vec![grad(), x()]);
        }
    }
}

fn masks<B: Host>(backend: &str) {
    const INF: f64 = f64::INFINITY;
    let plan = SoftmaxPlan::segments("segment_softmax", &Segments::from_lengths(&[2, 0, 3, 2]), &[]).unwrap();
    let x = || B::from_floats(vec![-INF, -INF, 3.0, -INF, 3.0, -INF, f64::NAN], plan.shape());
    let x = || vec![x()].into();
    for (name, y) in [("kernel", B::run(x(), plan.clone())), ("fallback", plan.reference::<B>(x()))] {
        let y = B::floats::<f64>(&y.floats[0]);
        assert!(y[..5] == [0.0, 0.0, 0.5, 0.0, 0.5] && y[5].is_nan() && y[6].is_nan(), "{backend}, {name}: {y:?}");
    }
}

#[test]
fn groups_of_masks() {
    masks::<Flex>("flex");
    masks::<NdArray>("ndarray");
}

#[test]
fn fallback_on_cpu_backends() {
    compare::<Flex>("flex");
    compare::<NdArray>("ndarray");
}

#[test]
#[should_panic(expected = "the gradient of a gradient is not implemented")]
fn second_order_is_refused() {
    let plan = SoftmaxPlan::segments("segment_softmax", &Segments::from_lengths(&[2]), &[]).unwrap();
    let ones = || FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32; 2], [2])));
    let _ = Ad::run(vec![ones().require_grad(), ones()].into(), SoftmaxGrad(plan));
}
