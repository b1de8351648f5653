//! Calls the CPU kernels of log-sum-exp.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::logsumexp as kernel;
use burn_gnn_plan::LogSumExpPlan;

use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

pub(super) fn forward<B: Host>(plan: &LogSumExpPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [x] = inputs.take();
    Tensors::one(
        by_dtype!(x.dtype(), T => B::from_floats(kernel::forward::<T>(plan, &B::floats(&x)), plan.out_shape())),
    )
}

pub(super) fn gradient<B: Host>(plan: &LogSumExpPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [x, grad] = inputs.take();
    Tensors::one(
        by_dtype!(x.dtype(), T => B::from_floats(kernel::gradient::<T>(plan, &B::floats(&x), &B::floats(&grad)), plan.softmax().shape())),
    )
}
