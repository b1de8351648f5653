//! Adds the gradients of a tensor and of its first rows.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{Shape, Slice};

use crate::primitives::zeros;

/// The gradient of a tensor, from the gradients of all rows and of the first rows. `add` adds the latter to the former,
/// `extend` appends rows of zeros.
pub(crate) fn join<B: Backend>(
    due: &FloatTensor<B>,
    grads: Vec<Option<FloatTensor<B>>>,
    shape: Shape,
    add: impl FnOnce(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    extend: impl FnOnce(FloatTensor<B>, Shape) -> FloatTensor<B>,
) -> FloatTensor<B> {
    let mut grads =
        grads.into_iter().map(|grad| grad.filter(|grad| grad.shape().num_elements() > 0));
    match (grads.next().flatten(), grads.next().flatten()) {
        (Some(all), Some(first)) => add(all, first),
        (Some(all), None) => all,
        (None, Some(first)) => extend(first, shape),
        (None, None) => zeros::<B>(shape, due),
    }
}

/// Adds `first` to the first rows of `all`.
pub(crate) fn add<B: Backend>(all: FloatTensor<B>, first: FloatTensor<B>) -> FloatTensor<B> {
    let place = [Slice::from(0..first.shape()[0])];
    let sum = B::float_add(B::float_slice(all.clone(), &place), first);
    B::float_slice_assign(all, &place, sum)
}

/// Appends rows of zeros to `first`, up to `shape`.
pub(crate) fn extend<B: Backend>(first: FloatTensor<B>, shape: Shape) -> FloatTensor<B> {
    let mut rest = shape;
    rest[0] -= first.shape()[0];
    let rest = zeros::<B>(rest, &first);
    B::float_cat(vec![first, rest], 0)
}
