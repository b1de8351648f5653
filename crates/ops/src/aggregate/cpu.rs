//! The kernels on the tensors of CPU backends.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use super::{AggregateBackend, AggregatePlan, reference};
use crate::cpu::{Host, by_dtype};
use crate::kernel::{Acc, Elem, weighted};

fn factors<T: Elem>(scale: Option<&super::DegreeScale>) -> Option<Vec<T::Acc>> {
    scale.map(|s| s.factors(T::Acc::of_f64))
}

fn forward<B: Host>(x: &FloatTensor<B>, weight: &FloatTensor<B>, bias: &FloatTensor<B>, plan: &AggregatePlan) -> FloatTensor<B> {
    by_dtype!(x.dtype(), T => {
        let (x, weight, bias) = (B::floats::<T>(x), B::floats::<T>(weight), B::floats::<T>(bias));
        let (source, destination) = (factors::<T>(plan.source()), factors::<T>(plan.destination()));
        let bias: Vec<_> = bias.iter().map(|b| b.acc()).collect();
        let out = weighted::aggregate(&weighted::Weighted {
            rows: plan.relation().csc(),
            x: &x,
            scale: source.as_deref(),
            weight: plan.weighted().then_some(&*weight),
            after: destination.as_deref(),
            bias: plan.biased().then_some(&bias[..]),
            activation: plan.activation(),
            width: plan.width(),
        });
        B::from_floats(out, plan.out_shape())
    })
}

fn gradient<B: Host>(
    grad: &FloatTensor<B>,
    out: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    plan: &AggregatePlan,
    wants_x: bool,
) -> (FloatTensor<B>, FloatTensor<B>) {
    by_dtype!(grad.dtype(), T => {
        let (grad, out, weight) = (B::floats::<T>(grad), B::floats::<T>(out), B::floats::<T>(weight));
        let (source, destination) = (factors::<T>(plan.source()), factors::<T>(plan.destination()));
        let (h, d_bias) = weighted::before(&grad, &out, plan.activation(), plan.width(), plan.biased());
        let d_bias: Vec<T> = d_bias.into_iter().map(T::of).collect();
        let d_bias = B::from_floats(d_bias, Shape::from(vec![if plan.biased() { plan.width() } else { 0 }]));
        if !wants_x {
            return (B::from_floats(Vec::<T>::new(), Shape::from(vec![0, plan.width()])), d_bias);
        }
        let d_x = weighted::aggregate(&weighted::Weighted {
            rows: plan.relation().csr(),
            x: h.as_deref().unwrap_or(&grad),
            scale: destination.as_deref(),
            weight: plan.weighted().then_some(&*weight),
            after: source.as_deref(),
            bias: None,
            activation: crate::Activation::None,
            width: plan.width(),
        });
        (B::from_floats(d_x, plan.in_shape()), d_bias)
    })
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
                gradient::<Self>(&grad, &out, &weight, &plan, wants_x)
            }
            // Weights of edges are constants as a rule; their gradient is two products and a GSpMM.
            fn aggregate_grad_weight(
                grad: FloatTensor<Self>,
                out: FloatTensor<Self>,
                x: FloatTensor<Self>,
                plan: AggregatePlan,
            ) -> FloatTensor<Self> {
                reference::gradient_of_weight::<Self>(grad, out, x, &plan)
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
