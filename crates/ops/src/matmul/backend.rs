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

/// Products of rows with a matrix of weights.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Autodiff)]
pub trait MatmulBackend: Backend {
    /// `x · w`; no axis has length 0.
    fn matmul_weights(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(x, w)
    }
}

#[cfg(feature = "flex")]
impl MatmulBackend for Flex {}
#[cfg(feature = "ndarray")]
impl MatmulBackend for NdArray {}
