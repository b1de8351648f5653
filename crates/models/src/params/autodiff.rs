//! Moves tensors to autodiff devices.

use burn::tensor::Tensor;

/// The new value of a parameter, tracked as the old one: the result of an operation on a tracked tensor is no leaf.
pub(crate) fn leaf_like<const D: usize>(old: &Tensor<D>, plain: Tensor<D>) -> Tensor<D> {
    if old.is_autodiff() { plain.autodiff().set_require_grad(old.is_require_grad()) } else { plain }
}

/// `x` on the autodiff device of a weight, where that is on one: dropout of features is in effect then. No gradient of
/// `x` is made.
pub(crate) fn beside<const D: usize>(x: Tensor<2>, weight: &Tensor<D>) -> Tensor<2> {
    if weight.is_autodiff() && !x.is_autodiff() { Tensor::from_inner(x) } else { x }
}
