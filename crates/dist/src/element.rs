//! Defines the element types of distributed tensors.

use burn::tensor::Element;
use bytemuck::Pod;
use safetensors::Dtype;

/// An element of a [`DistTensor`](crate::DistTensor).
pub trait DistElement: Pod + Element + PartialEq + Send + Sync {
    /// Dtype in files.
    const DTYPE: Dtype;
    /// The sum of [`DistTensor::add`](crate::DistTensor::add); integers wrap around.
    #[must_use]
    fn sum(a: Self, b: Self) -> Self;
}

macro_rules! element {
    ($($t:ty, $dtype:ident, $sum:expr;)*) => {
        $(impl DistElement for $t {
            const DTYPE: Dtype = Dtype::$dtype;
            fn sum(a: Self, b: Self) -> Self {
                let sum: fn(Self, Self) -> Self = $sum;
                sum(a, b)
            }
        })*
    };
}

element! {
    f32, F32, |a, b| a + b;
    f64, F64, |a, b| a + b;
    i32, I32, |a, b| a.wrapping_add(b);
    i64, I64, |a, b| a.wrapping_add(b);
    u8, U8, |a, b| a.wrapping_add(b);
    u32, U32, |a, b| a.wrapping_add(b);
}
