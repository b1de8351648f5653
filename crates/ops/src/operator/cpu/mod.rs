//! Connects CPU backends to kernels, which read tensors as slices.

#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "flex", feature = "ndarray"))]
mod run;

use std::borrow::Cow;

use burn::backend::tensor::FloatTensor;

pub(crate) use crate::operator::definition::{Float, Host};

/// The entries of an operand; empty for an absent one.
pub(crate) fn floats_or_none<B: Host, T: Float>(x: Option<&FloatTensor<B>>) -> Cow<'_, [T]> {
    x.map_or(Cow::Borrowed(&[][..]), B::floats::<T>)
}

/// Runs `$body` with `$t` as the element type. Public functions reject other types before.
macro_rules! by_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            burn::tensor::DType::F32 => by_dtype!(@ f32, $t, $body),
            burn::tensor::DType::F64 => by_dtype!(@ f64, $t, $body),
            #[cfg(feature = "f16")]
            burn::tensor::DType::F16 => by_dtype!(@ half::f16, $t, $body),
            #[cfg(feature = "f16")]
            burn::tensor::DType::BF16 => by_dtype!(@ half::bf16, $t, $body),
            other => $crate::error::no_kernel(other),
        }
    };
    (@ $ty:ty, $t:ident, $body:expr) => {{
        type $t = $ty;
        $body
    }};
}
pub(crate) use by_dtype;
