//! The unfused composition: the oracle of tests, and what a backend without kernels runs.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Tensor, TensorData};
use burn_gnn_graph::Relation;

use super::{AggregateOptions, AggregatePlan, DegreeScale};
use crate::backend::Kept;
use crate::gspmm::{BinaryOp, GspmmPlan, Reduce, Side, accept, gspmm_reference};
use crate::primitives::{narrow, widen};
use crate::{GnnBackend, activation as act, bias_activation_reference};

/// [`weighted_aggregate`](super::weighted_aggregate) in plain tensor operations, differentiated by Burn.
///
/// # Panics
/// As [`weighted_aggregate`](super::weighted_aggregate).
#[track_caller]
pub fn weighted_aggregate_reference(
    relation: &Relation,
    x: Tensor<2>,
    weight: Option<Tensor<1>>,
    bias: Option<Tensor<1>>,
    options: &AggregateOptions,
) -> Tensor<2> {
    accept(super::check(relation, &x, weight.as_ref(), bias.as_ref(), options));
    let scaled = |x: Tensor<2>, by: &Option<DegreeScale>| match by {
        None => x,
        Some(by) => {
            let factors = TensorData::new(by.double().to_vec(), [by.degrees().len(), 1]);
            let factors = Tensor::from_data(factors, (&x.device().without_autodiff(), x.dtype()));
            x * factors
        }
    };
    let x = scaled(x, &options.source);
    let y: Tensor<2> = match weight {
        Some(w) => gspmm_reference(relation, BinaryOp::Mul, Reduce::Sum, x, w),
        None => gspmm_reference(relation, BinaryOp::CopyLhs, Reduce::Sum, x.clone(), x),
    };
    let y = scaled(y, &options.destination);
    bias_activation_reference(y, bias, options.activation, None)
}

fn scaled<B: Backend>(x: FloatTensor<B>, scale: Option<&DegreeScale>) -> FloatTensor<B> {
    let Some(scale) = scale else { return x };
    let factors = TensorData::new(scale.double().to_vec(), [scale.degrees().len(), 1]).convert_dtype(x.dtype());
    let factors = B::float_from_data(factors, &x.device());
    B::float_mul(x, factors)
}

/// Stands for an operand, or a gradient, that is not there.
pub(super) fn nothing<B: Backend>(like: &FloatTensor<B>) -> FloatTensor<B> {
    crate::primitives::nothing::<B>([0], &like.device(), like.dtype())
}

/// The sum inside. Its shapes were checked, so a plan can be made.
pub(super) fn product(plan: &AggregatePlan) -> GspmmPlan {
    let op = if plan.weighted() { BinaryOp::Mul } else { BinaryOp::CopyLhs };
    let rhs: &[usize] = if plan.weighted() { &[] } else { &[plan.width()] };
    match GspmmPlan::new(plan.relation(), op, Reduce::Sum, &[plan.width()], rhs) {
        Ok(plan) => plan,
        Err(misfit) => unreachable!("one number per edge broadcasts with any row: {misfit:?}"),
    }
}

pub(crate) fn forward<B: GnnBackend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let dtype = x.dtype();
    let (x, weight, bias) = (widen::<B>(x), widen::<B>(weight), widen::<B>(bias));
    let x = scaled::<B>(x, plan.source());
    let y = if plan.weighted() { B::gspmm_binary(x, weight, product(plan)) } else { B::gspmm_copy(x, product(plan)) };
    let mut y = scaled::<B>(y, plan.destination());
    if plan.biased() {
        y = B::float_add(y, B::float_reshape(bias, Shape::from(vec![1, plan.width()])));
    }
    narrow::<B>(act::value::<B>(y, plan.activation()), dtype)
}

/// `act'(out) · grad`, in the type of sums.
fn before_activation<B: Backend>(grad: FloatTensor<B>, out: FloatTensor<B>, plan: &AggregatePlan) -> FloatTensor<B> {
    act::chain::<B>(widen::<B>(out), widen::<B>(grad), plan.activation())
}

pub(crate) fn gradient<B: GnnBackend>(
    grad: FloatTensor<B>,
    out: FloatTensor<B>,
    weight: FloatTensor<B>,
    plan: &AggregatePlan,
    wants_x: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (dtype, none) = (grad.dtype(), nothing::<B>(&grad));
    let h = before_activation::<B>(grad, out, plan);
    let d_bias = if plan.biased() {
        narrow::<B>(B::float_reshape(B::float_sum_dim(h.clone(), 0), Shape::from(vec![plan.width()])), dtype)
    } else {
        none.clone()
    };
    if !wants_x {
        return (none, d_bias);
    }
    let h = scaled::<B>(h, plan.destination());
    let kept = if plan.weighted() { Kept::Rhs(widen::<B>(weight)) } else { Kept::Nothing };
    let d_x = B::gspmm_grad(h, kept, product(plan), Side::Lhs);
    (narrow::<B>(scaled::<B>(d_x, plan.source()), dtype), d_bias)
}

pub(crate) fn gradient_of_weight<B: GnnBackend>(
    grad: FloatTensor<B>,
    out: FloatTensor<B>,
    x: FloatTensor<B>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let dtype = grad.dtype();
    let h = scaled::<B>(before_activation::<B>(grad, out, plan), plan.destination());
    let x = scaled::<B>(widen::<B>(x), plan.source());
    narrow::<B>(B::gspmm_grad(h, Kept::Lhs(x), product(plan), Side::Rhs), dtype)
}
