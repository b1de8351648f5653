//! Implements linear layers, normalisation and multi-layer perceptrons.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{BatchNorm, Initializer, LayerNorm, Linear};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, bias_activation, matmul_rows};

use crate::error::ModelError;
use crate::params::init::{Init, panicking_init};

/// `x W + b`, also of no rows, which Burn's own forward does not take on every backend.
pub(crate) fn apply(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    apply_then(layer, x, Activation::None)
}

/// `activation(x W + b)`.
pub(crate) fn apply_then(layer: &Linear, x: Tensor<2>, activation: Activation) -> Tensor<2> {
    bias_activation(
        matmul_rows(x, layer.weight.val()),
        layer.bias.as_ref().map(|b| b.val()),
        activation,
        None,
    )
}

/// `x + b` where there is a bias.
#[track_caller]
pub(crate) fn add_bias(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    bias_activation(x, bias, Activation::None, None)
}

/// `x W + b` of a layer that may be left out.
pub(crate) fn apply_some(layer: Option<&Linear>, x: Tensor<2>) -> Tensor<2> {
    match layer {
        Some(layer) => apply(layer, x),
        None => x,
    }
}

/// `1 / (1 + e^-x)` in the precision of `x`; Burn's own is computed in f32 on the ndarray backend.
pub(crate) fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    (x * 0.5).tanh() * 0.5 + 0.5
}

/// `x Φ(x)` with Φ of the normal distribution. Burn 0.22.1 differentiates another formula than it computes (that of
/// `tanh`) on every backend but Flex, with gradients that are off by up to 1e-3.
pub(crate) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() * 0.5 + 0.5)
}

/// `√(max(x, 0) + eps)` with gradient 0 where `x` is not above 0: the derivative of the root is as large as `eps` is
/// small there, and meets the rounding errors of `x`.
pub(crate) fn root(x: Tensor<2>, eps: f64) -> Tensor<2> {
    let flat = x.clone().lower_equal_elem(0.0);
    (x.mask_fill(flat, 0.0) + eps).sqrt()
}

/// Normalisation over features where a layer has one, also of no rows.
pub(crate) fn normalise(norm: Option<&LayerNorm>, x: Tensor<2>) -> Tensor<2> {
    match norm {
        Some(norm) if x.dims()[0] > 0 => norm.forward(x),
        _ => x,
    }
}

/// Normalisation by the running means and variances; of no rows too.
fn running(norm: &BatchNorm, x: Tensor<2>) -> Tensor<2> {
    let row = |t: Tensor<1>| t.without_autodiff().cast(x.dtype()).unsqueeze::<2>();
    let (mean, variance) =
        (row(norm.running_mean.value_sync()), row(norm.running_var.value_sync()));
    let scale = (variance + norm.epsilon).sqrt().recip() * norm.gamma.val().unsqueeze();
    (x - mean) * scale + norm.beta.val().unsqueeze()
}

/// Normalisation by the batch where the module trains: on an autodiff device, its training flag enabled (Burn's rule).
/// By running means otherwise, and of no rows, whose mean would be 0 / 0.
pub(crate) fn normalised(norm: &BatchNorm, x: Tensor<2>) -> Tensor<2> {
    let trains = x.dims()[0] > 0 && x.is_autodiff() && norm.training.is_enabled();
    if trains { norm.forward(x) } else { running(norm, x) }
}

/// Describes an [`Mlp`].
#[derive(Config, Debug)]
pub struct MlpConfig {
    /// Feature sizes of the input, the hidden layers and the output: one more than layers.
    pub widths: Vec<usize>,
    /// Whether biases are added.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Linear maps with ReLU between them (none behind the last).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::MlpConfig;
/// let mlp = MlpConfig::new(vec![4, 16, 2]).init(&Device::flex());
/// assert_eq!(mlp.forward(Tensor::ones([3, 4], &Device::flex())).dims(), [3, 2]);
/// ```
#[derive(Module, Debug)]
pub struct Mlp {
    /// Input first.
    pub layers: Vec<Linear>,
}

impl MlpConfig {
    /// Initializes weights by Glorot, biases with 0.
    ///
    /// # Errors
    /// Fewer than two feature sizes.
    pub fn try_init(&self, device: &Device) -> Result<Mlp, ModelError> {
        Mlp::new(&self.widths, self.bias, Init { initializer: &self.initializer, device })
    }
}

panicking_init!(MlpConfig => Mlp);

impl Mlp {
    pub(crate) fn new(widths: &[usize], bias: bool, init: Init<'_>) -> Result<Self, ModelError> {
        let (count, range) = (widths.len(), "2.. (input and output)");
        ModelError::check_range("number of widths", range, count, count >= 2)?;
        Ok(Self { layers: widths.windows(2).map(|w| init.linear([w[0], w[1]], bias)).collect() })
    }

    /// `[rows, last feature size]` from `[rows, first feature size]`.
    #[track_caller]
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let last = self.layers.len() - 1;
        self.layers.iter().enumerate().fold(x, |x, (i, layer)| {
            apply_then(layer, x, if i < last { Activation::Relu } else { Activation::None })
        })
    }
}

#[cfg(all(test, feature = "flex", feature = "ndarray"))]
mod tests {
    #![allow(deprecated)] // `Device::ndarray`

    use burn::tensor::DType;

    use super::*;

    const POINTS: [f64; 9] = [-6.0, -2.5, -1.0, -0.3, 0.0, 0.2, 0.75, 1.5, 5.0];

    /// Values and gradients in f64.
    fn both(device: &Device, f: impl Fn(Tensor<2>) -> Tensor<2>, x: &[f64]) -> [Vec<f64>; 2] {
        let on = (&device.clone().autodiff(), DType::F64);
        let rows = burn::tensor::TensorData::new(x.to_vec(), [x.len(), 1]);
        let x = Tensor::<2>::from_data(rows, on).require_grad();
        let y = f(x.clone());
        let grad = x.grad(&y.clone().sum().backward()).unwrap();
        [y.inner(), grad].map(|t| t.into_data().iter::<f64>().collect())
    }

    #[test]
    fn gelu_and_its_gradient_are_exact() {
        for device in [Device::flex(), Device::ndarray()] {
            let [y, grad] = both(&device, gelu, &POINTS);
            let h = 1e-4;
            let at = |d: f64| both(&device, gelu, &POINTS.map(|x| x + d))[0].clone();
            let differences = at(h).into_iter().zip(at(-h)).map(|(a, b)| (a - b) / (2.0 * h));
            for (got, want) in grad.iter().zip(differences) {
                assert!((got - want).abs() < 1e-7, "{device:?}: {got} for {want}");
            }
            // Φ(1.5) = 0.933192798731142
            assert!((y[7] - 1.5 * 0.933_192_798_731_142).abs() < 1e-12, "{device:?}: {y:?}");
        }
    }

    /// However small the bound is, and where rounding leaves less than 0.
    #[test]
    fn a_root_has_no_gradient_at_0() {
        for device in [Device::flex(), Device::ndarray()] {
            let [y, grad] = both(&device, |x| root(x, 1e-30), &[0.0, -1e-17, 4.0]);
            assert_eq!(y, [1e-15, 1e-15, 2.0], "{device:?}");
            assert_eq!(grad, [0.0, 0.0, 0.25], "{device:?}");
        }
    }
}
