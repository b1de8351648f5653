//! The backend extension of edge softmax.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, backend_extension};

use super::{EdgeSoftmaxPlan, reference};

/// Kernels of edge softmax. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait EdgeSoftmaxBackend: Backend {
    /// Softmax over the edges of each destination of the plan; returns the shape of `x`.
    #[fusion(dtype = x, shape = plan.shape())]
    fn edge_softmax(x: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        reference::forward::<Self>(x, &plan)
    }

    /// Its gradient, from its result `y` and the gradient of `y`.
    #[fusion(dtype = grad, shape = plan.shape())]
    fn edge_softmax_grad(y: FloatTensor<Self>, grad: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        reference::gradient::<Self>(y, grad, &plan)
    }

    /// [`edge_softmax`](Self::edge_softmax) in plain primitives on every backend, differentiated by Burn
    /// itself: the oracle of tests.
    #[fusion(default)]
    fn edge_softmax_reference(x: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        reference::forward::<Self>(x, &plan)
    }
}
