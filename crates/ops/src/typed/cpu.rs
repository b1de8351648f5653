//! Typed products on the tensors of CPU backends.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::widen::{Real, by_real};
use super::{TypedPlan, kernel};
use crate::cpu::Host;
use crate::kernel::Elem;
use crate::operator::Tensors;

/// `a` times the matrices, or times their transposes.
pub(super) fn multiply<B: Host>(plan: &TypedPlan, inputs: Tensors<B>, transposed: bool) -> Tensors<B> {
    fn typed<B: Host, T: Elem<Acc = A>, A: Real>(plan: &TypedPlan, [a, b]: &[FloatTensor<B>; 2], transposed: bool) -> FloatTensor<B> {
        let out = kernel::multiply::<A, T>(plan, &B::floats::<T>(a), &B::floats::<T>(b), transposed);
        B::from_floats(out, if transposed { plan.a_shape() } else { plan.out_shape() })
    }
    let inputs = inputs.take();
    Tensors::one(by_real!(inputs[0].dtype(), typed::<B>(plan, &inputs, transposed)))
}

pub(super) fn gradient_of_matrices<B: Host>(plan: &TypedPlan, inputs: Tensors<B>) -> Tensors<B> {
    fn typed<B: Host, T: Elem<Acc = A>, A: Real>(plan: &TypedPlan, [grad, a]: &[FloatTensor<B>; 2]) -> FloatTensor<B> {
        B::from_floats(kernel::grad_b::<A, T>(plan, &B::floats::<T>(a), &B::floats::<T>(grad)), plan.b_shape())
    }
    let inputs = inputs.take();
    Tensors::one(by_real!(inputs[0].dtype(), typed::<B>(plan, &inputs)))
}
