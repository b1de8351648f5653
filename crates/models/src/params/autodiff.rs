//! Moves tensors to autodiff devices.

use burn::tensor::Tensor;

/// Makes `plain` a leaf of the autodiff graph if the parameter value `old` is on an autodiff device. The result of an
/// operation on a tracked tensor would not be a leaf.
pub(crate) fn leaf_like<const D: usize>(old: &Tensor<D>, plain: Tensor<D>) -> Tensor<D> {
    if old.is_autodiff() { plain.autodiff().set_require_grad(old.is_require_grad()) } else { plain }
}

/// Moves `x` to the autodiff device of a weight, if the weight is on one, so that dropout of `x` is active. `x` gets no
/// gradient.
pub(crate) fn to_device_of<const D: usize>(x: Tensor<2>, weight: &Tensor<D>) -> Tensor<2> {
    if weight.is_autodiff() && !x.is_autodiff() { Tensor::from_inner(x) } else { x }
}
