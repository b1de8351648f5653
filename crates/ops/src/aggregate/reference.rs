//! Composes weighted aggregation of Burn primitives: the oracle of tests, and the fallback of backends without kernels.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Tensor, TensorData};
use burn_gnn_graph::Relation;

use super::operator::{AggregateGrad, GradInputs};
use super::{AggregateOptions, AggregatePlan, DegreeScale};
use crate::check::accept;
use crate::gspmm::{BinaryOp, GspmmGrad, Reduce, gspmm_on, gspmm_reference};
use crate::operator::{GnnBackend, Tensors};
use crate::primitives::{narrow, widen};
use crate::{activation as act, bias_activation_reference};

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
    let factors = TensorData::new(scale.double().to_vec(), [scale.degrees().len(), 1])
        .convert_dtype(x.dtype());
    let factors = B::float_from_data(factors, &x.device());
    B::float_mul(x, factors)
}

pub(crate) fn forward<B: GnnBackend>(
    x: FloatTensor<B>,
    weight: Option<FloatTensor<B>>,
    bias: Option<FloatTensor<B>>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let dtype = x.dtype();
    let x = scaled::<B>(widen::<B>(x), plan.source());
    let y = gspmm_on::<B>(plan.product(), std::iter::once(x).chain(weight.map(widen::<B>)));
    let mut y = scaled::<B>(y, plan.destination());
    if let Some(bias) = bias {
        y = B::float_add(y, B::float_reshape(widen::<B>(bias), Shape::from(vec![1, plan.width()])));
    }
    narrow::<B>(act::value::<B>(y, plan.activation()), dtype)
}

/// `act'(out) · grad`, in the type of sums.
fn before_activation<B: Backend>(
    grad: FloatTensor<B>,
    out: Option<FloatTensor<B>>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let grad = widen::<B>(grad);
    match out {
        Some(out) => act::chain::<B>(widen::<B>(out), grad, plan.activation()),
        None => grad,
    }
}

/// The gradient of one operand of the sum inside.
fn of_product<B: GnnBackend>(
    h: FloatTensor<B>,
    other: Option<FloatTensor<B>>,
    wants: [bool; 2],
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let op = GspmmGrad { plan: plan.product(), wants };
    B::run(std::iter::once(h).chain(other.map(widen::<B>)).collect::<Vec<_>>().into(), op)
        .read()
        .float()
}

pub(super) fn gradient<B: GnnBackend>(
    AggregateGrad { plan, x, bias }: &AggregateGrad,
    given: GradInputs<B>,
) -> Tensors<B> {
    let dtype = given.grad.dtype();
    let h = before_activation::<B>(given.grad, given.out, plan);
    let d_bias = bias.then(|| {
        narrow::<B>(
            B::float_reshape(B::float_sum_dim(h.clone(), 0), Shape::from(vec![plan.width()])),
            dtype,
        )
    });
    let d_x = x.then(|| {
        let d_x =
            of_product::<B>(scaled::<B>(h, plan.destination()), given.other, [true, false], plan);
        narrow::<B>(scaled::<B>(d_x, plan.source()), dtype)
    });
    d_x.into_iter().chain(d_bias).collect()
}

pub(super) fn gradient_of_weight<B: GnnBackend>(
    given: GradInputs<B>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let dtype = given.grad.dtype();
    let h = scaled::<B>(before_activation::<B>(given.grad, given.out, plan), plan.destination());
    let x = given.other.map(|x| scaled::<B>(widen::<B>(x), plan.source()));
    narrow::<B>(of_product::<B>(h, x, [false, true], plan), dtype)
}
