//! The backend extension of products with a matrix of weights.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[cfg(feature = "flex")]
#[allow(unused_imports)]
use burn::backend::Flex;
#[cfg(feature = "ndarray")]
#[allow(unused_imports)]
use burn::backend::NdArray;
#[allow(unused_imports)]
use burn::backend::{Autodiff, Backend, backend_extension};

/// Which operands of a product are stored transposed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transpose {
    /// The left one is stored as `[k, m]`.
    pub left: bool,
    /// The right one is stored as `[n, k]`.
    pub right: bool,
}

/// Products of rows with a matrix of weights; no axis of an operand has length 0.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait MatmulBackend: Backend {
    /// `l · r`.
    #[fusion(default)]
    fn matmul_transposed(l: FloatTensor<Self>, r: FloatTensor<Self>, transpose: Transpose) -> FloatTensor<Self> {
        by_backend::<Self>(l, r, transpose)
    }
    /// `sum + x · w`.
    #[fusion(default)]
    fn matmul_onto(x: FloatTensor<Self>, w: FloatTensor<Self>, sum: FloatTensor<Self>) -> FloatTensor<Self> {
        added::<Self>(x, w, sum)
    }
}

/// [`MatmulBackend::matmul_transposed`] in the backend's own operations.
pub(super) fn by_backend<B: Backend>(l: FloatTensor<B>, r: FloatTensor<B>, transpose: Transpose) -> FloatTensor<B> {
    let side = |x, transposed| if transposed { B::float_transpose(x) } else { x };
    B::float_matmul(side(l, transpose.left), side(r, transpose.right))
}

/// [`MatmulBackend::matmul_onto`] in the backend's own operations.
pub(super) fn added<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, sum: FloatTensor<B>) -> FloatTensor<B> {
    B::float_add(B::float_matmul(x, w), sum)
}
