//! Calls the CPU kernels of typed products.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::typed as kernel;

use super::TypedPlan;
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

/// `a` times the matrices, or times their transposes.
pub(super) fn multiply<B: Host>(
    plan: &TypedPlan,
    inputs: Tensors<B>,
    transposed: bool,
) -> Tensors<B> {
    let [a, b] = inputs.take();
    let shape = if transposed { plan.a_shape() } else { plan.out_shape() };
    by_dtype!(a.dtype(), T => {
        Tensors::one(B::from_floats(kernel::multiply::<T>(plan, &B::floats::<T>(&a), &B::floats::<T>(&b), transposed), shape))
    })
}

pub(super) fn gradient_of_matrices<B: Host>(plan: &TypedPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [grad, a] = inputs.take();
    by_dtype!(grad.dtype(), T => {
        Tensors::one(B::from_floats(kernel::gradient_of_matrices::<T>(plan, &B::floats::<T>(&grad), &B::floats::<T>(&a)), plan.b_shape()))
    })
}
