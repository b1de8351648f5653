//! Kernels of dense products run in f32 and f64; smaller floats are widened before and rounded once after.

use std::borrow::Cow;

use burn::backend::tensor::FloatTensor;
use burn::tensor::Shape;

use crate::cpu::Host;
use crate::kernel::{Acc, Elem};

/// An element type that is its own type of sums.
pub(crate) trait Real: Elem<Acc = Self> + Acc {}
impl Real for f32 {}
impl Real for f64 {}

/// The entries in the type that sums are kept in; copies only what is smaller.
pub(crate) fn widen<B: Host, T: Elem<Acc = A>, A: Real>(tensor: &FloatTensor<B>) -> Cow<'_, [A]> {
    match B::floats::<T>(tensor) {
        Cow::Borrowed(x) => match bytemuck::try_cast_slice(x) {
            // Sizes agree only where the types do: f32 is never widened to f64.
            Ok(same) if size_of::<T>() == size_of::<A>() => Cow::Borrowed(same),
            _ => Cow::Owned(x.iter().map(|x| x.acc()).collect()),
        },
        Cow::Owned(x) => Cow::Owned(x.into_iter().map(Elem::acc).collect()),
    }
}

/// The tensor of a result, rounded to `T`.
pub(crate) fn narrow<B: Host, T: Elem<Acc = A>, A: Real>(data: Vec<A>, shape: Shape) -> FloatTensor<B> {
    if size_of::<T>() == size_of::<A>() {
        return B::from_floats(data, shape);
    }
    B::from_floats(data.into_iter().map(T::of).collect(), shape)
}

/// Calls `$f::<$backend, T, A>($args)` with `T` the element type and `A` the type of its sums. Public
/// functions have refused other types before.
macro_rules! by_real {
    ($dtype:expr, $f:ident::<$backend:ty>($($arg:expr),* $(,)?)) => {
        match $dtype {
            burn::tensor::DType::F32 => $f::<$backend, f32, f32>($($arg),*),
            burn::tensor::DType::F64 => $f::<$backend, f64, f64>($($arg),*),
            burn::tensor::DType::F16 => $f::<$backend, half::f16, f32>($($arg),*),
            burn::tensor::DType::BF16 => $f::<$backend, half::bf16, f32>($($arg),*),
            other => panic!("no kernel for element type {other:?}; F32, F64, F16 and BF16 have one"),
        }
    };
}
pub(crate) use by_real;
