//! Calls the CPU kernels of softmax.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::softmax as kernel;

use super::SoftmaxPlan;
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

pub(super) fn forward<B: Host>(plan: &SoftmaxPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [x] = inputs.take();
    Tensors::one(
        by_dtype!(x.dtype(), T => B::from_floats(kernel::forward::<T>(plan, &B::floats(&x)), plan.shape())),
    )
}

pub(super) fn gradient<B: Host>(plan: &SoftmaxPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [grad, y] = inputs.take();
    Tensors::one(
        by_dtype!(grad.dtype(), T => B::from_floats(kernel::gradient::<T>(plan, &B::floats(&y), &B::floats(&grad)), plan.shape())),
    )
}
