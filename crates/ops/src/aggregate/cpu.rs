//! The kernels on the tensors of CPU backends.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use rayon::prelude::*;

use super::operator::{AggregateGrad, Given};
use super::{AggregatePlan, DegreeScale, reference};
use crate::Activation;
use crate::cpu::{Host, by_dtype};
use crate::gspmm::Side;
use crate::kernel::{self, Acc, Elem, weighted};
use crate::operator::Tensors;
use crate::typed::widen::{Real, by_real, widen};

fn factors<A: Acc>(scale: Option<&DegreeScale>) -> Option<&[A]> {
    // Sums are kept in f32 or f64, and their sizes tell which.
    scale.map(
        |scale| {
            if size_of::<A>() == size_of::<f64>() { bytemuck::cast_slice(scale.double()) } else { bytemuck::cast_slice(scale.single()) }
        },
    )
}

/// The entries of an operand, none of one that is not there.
fn entries<B: Host, T: Elem>(x: Option<&FloatTensor<B>>) -> Cow<'_, [T]> {
    x.map_or(Cow::Borrowed(&[][..]), B::floats::<T>)
}

pub(super) fn forward<B: Host>(plan: &AggregatePlan, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let (x, weight, bias) = (inputs.float(), inputs.float_if(plan.weighted()), inputs.float_if(plan.biased()));
    by_dtype!(x.dtype(), T => {
        let (x, weight, bias) = (B::floats::<T>(&x), entries::<B, T>(weight.as_ref()), entries::<B, T>(bias.as_ref()));
        let bias: Vec<_> = bias.iter().map(|b| b.acc()).collect();
        let out = weighted::aggregate(&weighted::Weighted {
            rows: kernel::Adjacency::new(plan.relation().csc()),
            x: &x,
            scale: factors(plan.source()),
            weight: plan.weighted().then_some(&*weight),
            after: factors(plan.destination()),
            bias: plan.biased().then_some(&bias[..]),
            activation: plan.activation(),
            width: plan.width(),
        });
        Tensors::one(B::from_floats(out, plan.out_shape()))
    })
}

/// `d x` from `h`, the gradient of what the activation was given: the sum over the reverse relation.
fn over_reverse<T: Elem>(h: &[T], weight: &[T], plan: &AggregatePlan) -> Vec<T> {
    weighted::aggregate(&weighted::Weighted {
        rows: kernel::Adjacency::new(plan.relation().csr()),
        x: h,
        scale: factors(plan.destination()),
        weight: plan.weighted().then_some(weight),
        after: factors(plan.source()),
        bias: None,
        activation: Activation::None,
        width: plan.width(),
    })
}

pub(super) fn gradient<B: Host>(op: &AggregateGrad, given: Given<B>) -> Tensors<B> {
    by_real!(given.grad.dtype(), typed_gradient::<B>(op, &given))
}

fn typed_gradient<B: Host, T: Elem<Acc = A>, A: Real>(AggregateGrad { plan, x, bias }: &AggregateGrad, given: &Given<B>) -> Tensors<B> {
    let (grad, out, weight) = (B::floats::<T>(&given.grad), entries::<B, T>(given.out.as_ref()), entries::<B, T>(given.other.as_ref()));
    let width = plan.width();
    let (d_x, d_bias) = if plan.activation() == Activation::None {
        let (_, d_bias) = weighted::before(&grad, &out, Activation::None, width, *bias);
        (x.then(|| over_reverse::<T>(&grad, &weight, plan)), d_bias)
    } else {
        // `h` is summed over edges and over rows before it is rounded.
        let grad = widen(&grad);
        let (h, d_bias) = weighted::before::<A>(&grad, &widen(&out), plan.activation(), width, *bias);
        (x.then(|| T::round(over_reverse::<A>(h.as_deref().unwrap_or(&grad), &widen(&weight), plan))), d_bias)
    };
    let d_x = d_x.map(|d_x| B::from_floats(d_x, plan.in_shape()));
    let d_bias = bias.then(|| B::from_floats(T::round(d_bias), Shape::from(vec![width])));
    d_x.into_iter().chain(d_bias).collect::<Vec<_>>().into()
}

pub(super) fn gradient_of_weight<B: Host>(plan: &AggregatePlan, given: Given<B>) -> Tensors<B> {
    by_real!(given.grad.dtype(), typed_gradient_of_weight::<B>(plan, &given))
}

/// `d w_e = l_u r_v (x[u] · h[v])`, rounded once: factors are applied to the products, one number per edge, so no
/// operand is scaled into a copy.
fn typed_gradient_of_weight<B: Host, T: Elem<Acc = A>, A: Real>(plan: &AggregatePlan, given: &Given<B>) -> Tensors<B> {
    let (grad, out, x) = (B::floats::<T>(&given.grad), entries::<B, T>(given.out.as_ref()), entries::<B, T>(given.other.as_ref()));
    let (grad, x): (Cow<'_, [A]>, Cow<'_, [A]>) = (widen(&grad), widen(&x));
    let h = match plan.activation() {
        Activation::None => None,
        activation => weighted::before::<A>(&grad, &widen(&out), activation, plan.width(), false).0,
    };
    let given = kernel::Given { grad: h.as_deref().unwrap_or(&grad), arg: None, lhs: &x, rhs: &[] };
    let mut d: Vec<A> = kernel::gradient(&reference::product(plan), Side::Rhs, given);
    for (scale, ends) in [(plan.source(), plan.relation().src()), (plan.destination(), plan.relation().dst())] {
        if let Some(by) = factors::<A>(scale) {
            d.par_iter_mut().zip(ends).with_min_len(1 << 14).for_each(|(d, &v)| *d = *d * by[v as usize]);
        }
    }
    let edges = d.len();
    Tensors::one(B::from_floats(T::round(d), Shape::from(vec![edges])))
}
