//! Calls the CPU kernels of cross entropy.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::dense::cross_entropy as kernel;
use burn_gnn_cpu::{Acc, Elem};

use super::CrossEntropyPlan;
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

pub(super) fn forward<B: Host>(plan: &CrossEntropyPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [logits] = inputs.take();
    by_dtype!(logits.dtype(), T => {
        let (loss, stats) = kernel::forward::<T>(&B::floats::<T>(&logits), plan);
        vec![B::from_floats(vec![loss], [1].into()), B::from_floats(stats, [plan.rows().len(), 2].into())].into()
    })
}

pub(super) fn gradient<B: Host>(plan: &CrossEntropyPlan, inputs: Tensors<B>) -> Tensors<B> {
    let [grad, stats, logits] = inputs.take();
    by_dtype!(logits.dtype(), T => {
        // One entry by the shape of the loss.
        let grad = B::floats::<T>(&grad).first().copied().unwrap_or(T::of(<T as Elem>::Acc::ZERO));
        let stats = B::floats::<<T as Elem>::Acc>(&stats);
        Tensors::one(B::from_floats(kernel::gradient::<T>(grad, &stats, &B::floats::<T>(&logits), plan), plan.shape().into()))
    })
}
