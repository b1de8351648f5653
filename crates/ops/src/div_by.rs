//! Divides tensors by constants.

use burn::tensor::Tensor;

/// `x / divisor`, computed as `x · (1 / divisor)`.
///
/// # Gradients
/// They have the precision of `x`. Gradients of `Tensor::div_scalar` do not: Burn 0.22.1 rounds their factor
/// `1 / divisor` to f32, a relative error of 1e-8 in f64.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use burn_gnn_ops::div_by;
/// let x = Tensor::<1>::from_data([2.0f64, 4.0], (&Device::flex().autodiff(), DType::F64)).require_grad();
/// let grads = div_by(x.clone(), 3.0).sum().backward();
/// assert_eq!(x.grad(&grads).unwrap().into_data().try_to_vec::<f64>().unwrap(), [1.0 / 3.0; 2]);
/// ```
pub fn div_by<const D: usize>(x: Tensor<D>, divisor: f64) -> Tensor<D> {
    x * divisor.recip()
}
