//! Lends tensors of CPU backends to kernels as slices.

#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "ndarray")]
mod ndarray;

use std::borrow::Cow;

#[cfg(any(feature = "flex", feature = "ndarray"))]
use burn::backend::TensorMetadata;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::tensor::{Element, Shape};
use burn_gnn_cpu::Elem;

use crate::operator::GnnBackend;
#[cfg(any(feature = "flex", feature = "ndarray"))]
use crate::operator::{Operator, Spec, Tensors};

/// An element type of Burn's that kernels know, as is the type that its sums are kept in.
pub(crate) trait Float: Elem<Acc: Element> + Element {}
impl<T: Elem<Acc: Element> + Element> Float for T {}

/// The entries of an operand, none of one that is not there.
pub(crate) fn floats_or_none<B: Host, T: Float>(x: Option<&FloatTensor<B>>) -> Cow<'_, [T]> {
    x.map_or(Cow::Borrowed(&[][..]), B::floats::<T>)
}

/// A backend whose tensors are slices on the host.
pub(crate) trait Host: GnnBackend {
    /// The entries in row-major order; copies only if they are not stored so.
    fn floats<T: Float>(tensor: &FloatTensor<Self>) -> Cow<'_, [T]>;
    /// Whether [`floats`](Self::floats) copies nothing.
    fn is_row_major(tensor: &FloatTensor<Self>) -> bool;
    /// As [`floats`](Self::floats), for 32-bit integers.
    fn ints(tensor: &IntTensor<Self>) -> Cow<'_, [i32]>;
    /// The entries to be changed in place, if no other tensor shares them and they are stored in row-major
    /// order; by default no backend gives them out.
    fn floats_mut<T: Float>(_tensor: &mut FloatTensor<Self>) -> Option<&mut [T]> {
        None
    }
    /// A tensor that takes the vector over.
    fn from_floats<T: Float>(data: Vec<T>, shape: Shape) -> FloatTensor<Self>;
    /// As [`from_floats`](Self::from_floats), for 32-bit integers.
    fn from_ints(data: Vec<i32>, shape: Shape) -> IntTensor<Self>;
}

/// Runs `$body` with `$t` the element type. Public functions have refused other types before.
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

/// The results of a call, in debug builds of the shapes that it announced.
#[cfg(any(feature = "flex", feature = "ndarray"))]
pub(crate) fn run<B: Host, O: Operator>(inputs: Tensors<B>, op: &O) -> Tensors<B> {
    #[cfg(all(test, feature = "flex", feature = "ndarray"))]
    if let Some(results) = crate::operator::property_tests::instead_of_kernel(&inputs, op) {
        return results;
    }
    if !cfg!(debug_assertions) {
        return op.cpu(inputs);
    }
    let specs = |x: &Tensors<B>| {
        x.floats.iter().map(|x| Spec::new(x.shape(), x.dtype())).collect::<Vec<_>>()
    };
    let announced = op.results(&specs(&inputs));
    let results = op.cpu(inputs);
    if let Some(announced) = announced {
        assert_eq!(specs(&results), announced.floats, "{}: results of {op:?}", O::NAME);
    }
    results
}
