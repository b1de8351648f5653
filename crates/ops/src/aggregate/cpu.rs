//! The kernels on the tensors of CPU backends.

use std::borrow::Cow;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;
use rayon::prelude::*;

use super::{AggregateBackend, AggregatePlan, DegreeScale, reference};
use crate::Activation;
use crate::cpu::{Host, by_dtype};
use crate::gspmm::Side;
use crate::kernel::{self, Acc, Elem, weighted};
use crate::typed::widen::{Real, by_real, widen};

fn factors<A: Acc>(scale: Option<&DegreeScale>) -> Option<&[A]> {
    scale.map(DegreeScale::factors)
}

fn forward<B: Host>(x: &FloatTensor<B>, weight: &FloatTensor<B>, bias: &FloatTensor<B>, plan: &AggregatePlan) -> FloatTensor<B> {
    by_dtype!(x.dtype(), T => {
        let (x, weight, bias) = (B::floats::<T>(x), B::floats::<T>(weight), B::floats::<T>(bias));
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
        B::from_floats(out, plan.out_shape())
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

fn gradient<B: Host, T: Elem<Acc = A>, A: Real>(
    grad: &FloatTensor<B>,
    out: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    plan: &AggregatePlan,
    wants_x: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (grad, out, weight) = (B::floats::<T>(grad), B::floats::<T>(out), B::floats::<T>(weight));
    let (width, biased) = (plan.width(), plan.biased());
    let (d_x, d_bias) = if plan.activation() == Activation::None {
        let (_, d_bias) = weighted::before(&grad, &out, Activation::None, width, biased);
        (wants_x.then(|| over_reverse::<T>(&grad, &weight, plan)), d_bias)
    } else {
        // `h` is summed over edges and over rows before it is rounded.
        let grad = widen(&grad);
        let (h, d_bias) = weighted::before::<A>(&grad, &widen(&out), plan.activation(), width, biased);
        (wants_x.then(|| T::round(over_reverse::<A>(h.as_deref().unwrap_or(&grad), &widen(&weight), plan))), d_bias)
    };
    let d_bias = B::from_floats(T::round(d_bias), Shape::from(vec![if biased { width } else { 0 }]));
    let d_x = match d_x {
        Some(d_x) => B::from_floats(d_x, plan.in_shape()),
        None => B::from_floats(Vec::<T>::new(), Shape::from(vec![0])),
    };
    (d_x, d_bias)
}

/// `d w_e = l_u r_v (x[u] · h[v])`, rounded once: factors are applied to the products, one number per edge, so no
/// operand is scaled into a copy.
fn gradient_of_weight<B: Host, T: Elem<Acc = A>, A: Real>(
    grad: &FloatTensor<B>,
    out: &FloatTensor<B>,
    x: &FloatTensor<B>,
    plan: &AggregatePlan,
) -> FloatTensor<B> {
    let (grad, out, x) = (B::floats::<T>(grad), B::floats::<T>(out), B::floats::<T>(x));
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
    B::from_floats(T::round(d), Shape::from(vec![edges]))
}

/// Kernels of this module as the implementation of a CPU backend.
macro_rules! aggregate_backend {
    ($backend:ty) => {
        impl AggregateBackend for $backend {
            fn aggregate(
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                bias: FloatTensor<Self>,
                plan: AggregatePlan,
            ) -> FloatTensor<Self> {
                forward::<Self>(&x, &weight, &bias, &plan)
            }
            fn aggregate_grad(
                grad: FloatTensor<Self>,
                out: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                plan: AggregatePlan,
                wants_x: bool,
            ) -> (FloatTensor<Self>, FloatTensor<Self>) {
                by_real!(TensorMetadata::dtype(&grad), gradient::<Self>(&grad, &out, &weight, &plan, wants_x))
            }
            fn aggregate_grad_weight(
                grad: FloatTensor<Self>,
                out: FloatTensor<Self>,
                x: FloatTensor<Self>,
                plan: AggregatePlan,
            ) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&grad), gradient_of_weight::<Self>(&grad, &out, &x, &plan))
            }
        }
    };
}

#[cfg(feature = "flex")]
aggregate_backend!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
mod ndarray {
    use super::*;
    aggregate_backend!(burn::backend::NdArray);
}
