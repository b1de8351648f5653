//! Relational aggregation as a backend extension.

// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};

use super::plan::{EdgeNorm, RelationalPlan};
use super::reference;

/// Kernels of relational aggregation. Default bodies are plain Burn primitives.
///
/// `x`, `weight`, the result and `grad` have the shapes that the plan names.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait RelationalBackend: Backend {
    /// `Σ_r Σ_(u,v,e) in r of norm[e] · x[u] W_r` for every destination.
    #[fusion(dtype = x, shape = plan.out_shape())]
    fn relational(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        reference::forward::<Self>(x, weight, norm, &plan)
    }

    /// Gradient of the input.
    #[fusion(dtype = grad, shape = plan.x_shape())]
    fn relational_grad_x(
        grad: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        reference::grad_x::<Self>(grad, weight, norm, &plan)
    }

    /// Gradient of the weights.
    #[fusion(dtype = grad, shape = plan.weight_shape())]
    fn relational_grad_weight(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        #[extension_type] norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        reference::grad_weight::<Self>(grad, x, norm, &plan)
    }

    /// Gradients of the input and of the weights, in one pass where there are kernels.
    #[fusion(meta = |grad, _x, _weight, _norm, plan| plan.gradient_specs(grad.dtype))]
    fn relational_grad_both(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        #[extension_type] norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let d_x = reference::grad_x::<Self>(grad.clone(), weight, norm.clone(), &plan);
        (d_x, reference::grad_weight::<Self>(grad, x, norm, &plan))
    }

    /// Gradient of the factors of edges.
    #[fusion(dtype = grad, shape = plan.norm_shape())]
    fn relational_grad_norm(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        reference::grad_norm::<Self>(grad, x, weight, &plan)
    }
}
