//! Typed products as a backend extension.

// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, backend_extension};

use super::plan::TypedPlan;
use super::reference;

/// Kernels of typed products. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait TypedBackend: Backend {
    /// Every row of `a` times its matrix; returns `plan.out_shape()`.
    #[fusion(dtype = a, shape = plan.out_shape())]
    fn typed_mm(a: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        reference::multiply::<Self>(a, b, &plan, false)
    }

    /// Gradient of the rows.
    #[fusion(dtype = grad, shape = plan.a_shape())]
    fn typed_mm_grad_a(grad: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        reference::multiply::<Self>(grad, b, &plan, true)
    }

    /// Gradient of the matrices.
    #[fusion(dtype = grad, shape = plan.b_shape())]
    fn typed_mm_grad_b(grad: FloatTensor<Self>, a: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        reference::grad_b::<Self>(grad, a, &plan)
    }
}
