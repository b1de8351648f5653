//! Formulas of losses, with exact gradients and without overflow.

use burn::tensor::Tensor;
use burn::tensor::activation::relu;

/// `log(1 + eˣ)`. A constant, the larger of `x` and 0, is subtracted from the exponents.
pub(crate) fn softplus<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    let largest = relu(x.clone().detach());
    ((x - largest.clone()).exp() + largest.clone().neg().exp()).log() + largest
}

/// `log Σ exp` of the rows of `[n, k]`, result `[n, 1]`. `k` is at least 1, and a row has a finite entry.
pub(super) fn log_sum_exp(x: Tensor<2>) -> Tensor<2> {
    let largest = x.clone().detach().max_dim(1);
    (x - largest.clone()).exp().sum_dim(1).log() + largest
}

/// Softmax of the rows of `temperature · x`, for `x: [n, k]`, which is not differentiated. An entry of -∞ has weight 0 if the
/// temperature is above 0.
pub(super) fn weights(x: Tensor<2>, temperature: f64) -> Tensor<2> {
    let x = x.detach().clamp_min(-1e30) * temperature;
    let largest = x.clone().max_dim(1);
    let e = (x - largest).exp();
    let sum = e.clone().sum_dim(1);
    e / sum
}
