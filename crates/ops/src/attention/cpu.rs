//! Calls the CPU kernels of attention.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::{Elem, attention as kernel};

use super::AttentionPlan;
use super::operator::{AttentionGrad, GradInputs};
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype};

pub(super) fn forward<B: Host>(plan: &AttentionPlan, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let (z, first, second) =
        (inputs.float(), inputs.float(), inputs.float_if(plan.slope().is_some()));
    by_dtype!(z.dtype(), T => {
        let second = second.as_ref().map(B::floats::<T>);
        let (out, stats) = kernel::forward::<T>(plan, &B::floats::<T>(&z), &B::floats::<T>(&first), second.as_deref());
        vec![B::from_floats(out, plan.out_shape()), B::from_floats(stats, plan.stats_shape())].into()
    })
}

pub(super) fn gradient<B: Host>(op: &AttentionGrad, given: GradInputs<B>) -> Tensors<B> {
    by_dtype!(given.grad.dtype(), T => {
        let second = given.second.as_ref().map(B::floats::<T>);
        let slices = kernel::GradInputs::<'_, T> {
            grad: &B::floats::<T>(&given.grad),
            out: &B::floats::<T>(&given.out),
            stats: &B::floats::<<T as Elem>::Acc>(&given.stats),
            z: &B::floats::<T>(&given.z),
            first: &B::floats::<T>(&given.first),
            second: second.as_deref(),
        };
        let all = kernel::gradient::<T>(&op.plan, slices, [op.z, op.first, op.second]);
        let [of_z, of_first, of_second] = op.shapes();
        let [d_z, d_first, d_second] = all;
        let all = op.wanted([(d_z, of_z), (d_first, of_first), (d_second, of_second)]);
        all.into_iter().map(|(data, shape)| B::from_floats(data, shape.into())).collect::<Vec<_>>().into()
    })
}
