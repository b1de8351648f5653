//! Moves inputs to the autodiff device of a weight.

use burn::tensor::Tensor;

/// `x` on the autodiff device of a weight, where that is on one: dropout of features is in effect then. No gradient of
/// `x` is made.
pub(crate) fn beside<const D: usize>(x: Tensor<2>, weight: &Tensor<D>) -> Tensor<2> {
    if weight.is_autodiff() && !x.is_autodiff() { Tensor::from_inner(x) } else { x }
}
