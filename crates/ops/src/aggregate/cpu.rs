//! Calls the CPU kernels of weighted aggregation.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn_gnn_cpu::aggregate as kernel;

use super::AggregatePlan;
use super::operator::{AggregateGrad, GradInputs};
use crate::operator::Tensors;
use crate::operator::cpu::{Float, Host, by_dtype, floats_or_none};

pub(super) fn forward<B: Host>(plan: &AggregatePlan, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let (x, weight, bias) =
        (inputs.float(), inputs.float_if(plan.weighted()), inputs.float_if(plan.biased()));
    by_dtype!(x.dtype(), T => {
        let (weight, bias) = (floats_or_none::<B, T>(weight.as_ref()), floats_or_none::<B, T>(bias.as_ref()));
        Tensors::one(B::from_floats(kernel::forward(plan, &B::floats::<T>(&x), &weight, &bias), plan.out_shape()))
    })
}

pub(super) fn gradient<B: Host>(
    AggregateGrad { plan, x, bias }: &AggregateGrad,
    given: GradInputs<B>,
) -> Tensors<B> {
    by_dtype!(given.grad.dtype(), T => {
        let (grad, out, other) = slices::<B, T>(&given);
        let [d_x, d_bias] = kernel::gradient(plan, kernel::GradInputs { grad: &grad, out: &out, other: &other }, [*x, *bias]);
        let d_x = d_x.map(|d_x| B::from_floats(d_x, plan.in_shape()));
        d_x.into_iter().chain(d_bias.map(|d_bias| B::from_floats(d_bias, [plan.width()].into()))).collect::<Vec<_>>().into()
    })
}

pub(super) fn gradient_of_weight<B: Host>(
    plan: &AggregatePlan,
    given: GradInputs<B>,
) -> Tensors<B> {
    by_dtype!(given.grad.dtype(), T => {
        let (grad, out, other) = slices::<B, T>(&given);
        let d = kernel::gradient_of_weight(plan, kernel::GradInputs { grad: &grad, out: &out, other: &other });
        Tensors::one(B::from_floats(d, [plan.relation().num_edges()].into()))
    })
}

type Slices<'a, T> = (Cow<'a, [T]>, Cow<'a, [T]>, Cow<'a, [T]>);

fn slices<B: Host, T: Float>(given: &GradInputs<B>) -> Slices<'_, T> {
    (
        B::floats::<T>(&given.grad),
        floats_or_none::<B, T>(given.out.as_ref()),
        floats_or_none::<B, T>(given.other.as_ref()),
    )
}
