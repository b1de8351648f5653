//! The cast as a backend extension: Burn's own takes one element at a time on one thread.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, backend_extension};
#[cfg(feature = "flex")]
use burn::backend::{Flex, TensorMetadata, flex::FlexTensor};
use burn::tensor::FloatDType;

/// The cast that [`with_precision`](crate::with_precision) makes.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait PrecisionBackend: Backend {
    /// `x` in another float type, rounded to nearest, ties to even.
    #[fusion(default)]
    fn precision_cast(x: FloatTensor<Self>, dtype: FloatDType) -> FloatTensor<Self> {
        Self::float_cast(x, dtype)
    }
}

#[cfg(feature = "flex")]
impl PrecisionBackend for Flex {
    fn precision_cast(x: FlexTensor, dtype: FloatDType) -> FlexTensor {
        use burn::tensor::DType;
        use half::{bf16, f16};

        use super::kernel::convert;
        use crate::cpu::Host;

        /// One pair of types, on slices.
        fn cast<A: crate::kernel::Elem<Acc = f32>, B: crate::kernel::Elem<Acc = f32>>(x: &FlexTensor) -> FlexTensor {
            let shape = x.shape();
            Flex::from_floats(convert::<A, B>(&Flex::floats::<A>(x)), shape)
        }
        match (x.dtype(), DType::from(dtype)) {
            (DType::F32, DType::F16) => cast::<f32, f16>(&x),
            (DType::F32, DType::BF16) => cast::<f32, bf16>(&x),
            (DType::F16, DType::F32) => cast::<f16, f32>(&x),
            (DType::BF16, DType::F32) => cast::<bf16, f32>(&x),
            (DType::F16, DType::BF16) => cast::<f16, bf16>(&x),
            (DType::BF16, DType::F16) => cast::<bf16, f16>(&x),
            _ => <Self as burn::backend::ops::FloatTensorOps<Self>>::float_cast(x, dtype),
        }
    }
}

/// It has no 16-bit types, so nothing is ever cast to one.
#[cfg(feature = "ndarray")]
impl PrecisionBackend for burn::backend::NdArray {}

/// Burn's own cast is one kernel there.
#[cfg(feature = "cube")]
impl PrecisionBackend for burn_cubecl::CubeBackend {}
