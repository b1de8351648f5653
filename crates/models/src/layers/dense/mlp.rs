//! Implements linear layers, normalisation and multi-layer perceptrons, also for tensors without rows.

use burn::config::Config;
use burn::module::Module;
use burn::nn::{BatchNorm, Initializer, LayerNorm, Linear};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, bias_activation, matmul_rows};

use crate::error::ModelError;
use crate::params::init::{Init, panicking_init};

/// Computes `x W + b`. Unlike Burn's `Linear::forward`, it supports tensors without rows on every backend.
pub(crate) fn apply(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    apply_then(layer, x, Activation::None)
}

/// Computes `activation(x W + b)`.
pub(crate) fn apply_then(layer: &Linear, x: Tensor<2>, activation: Activation) -> Tensor<2> {
    bias_activation(
        matmul_rows(x, layer.weight.val()),
        layer.bias.as_ref().map(|b| b.val()),
        activation,
        None,
    )
}

/// Adds a bias, if there is one.
#[track_caller]
pub(crate) fn add_bias(x: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    bias_activation(x, bias, Activation::None, None)
}

/// Applies a linear layer, if there is one.
pub(crate) fn apply_some(layer: Option<&Linear>, x: Tensor<2>) -> Tensor<2> {
    match layer {
        Some(layer) => apply(layer, x),
        None => x,
    }
}

/// Computes `1 / (1 + e^-x)` in the precision of `x`; Burn's sigmoid computes in f32 on the ndarray backend.
pub fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    (x * 0.5).tanh() * 0.5 + 0.5
}

/// Computes `x Φ(x)`, where Φ is the distribution function of the normal distribution. On every backend but Flex, the
/// gradient of Burn 0.22.1 is that of the approximation by `tanh`, which differs by up to 1e-3.
pub(crate) fn gelu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone() * ((x * std::f64::consts::FRAC_1_SQRT_2).erf() * 0.5 + 0.5)
}

/// Computes `√(max(x, 0) + eps)`, with gradient 0 if `x` is not above 0. There the derivative would be up to `1 / 2√eps`,
/// multiplied by rounding errors of `x`.
pub fn root(x: Tensor<2>, eps: f64) -> Tensor<2> {
    let flat = x.clone().lower_equal_elem(0.0);
    (x.mask_fill(flat, 0.0) + eps).sqrt()
}

/// Applies layer normalisation, if there is one and there are rows.
pub(crate) fn normalise(norm: Option<&LayerNorm>, x: Tensor<2>) -> Tensor<2> {
    match norm {
        Some(norm) if x.dims()[0] > 0 => norm.forward(x),
        _ => x,
    }
}

/// Normalises by running means and variances.
fn running(norm: &BatchNorm, x: Tensor<2>) -> Tensor<2> {
    let row = |t: Tensor<1>| t.without_autodiff().cast(x.dtype()).unsqueeze::<2>();
    let (mean, variance) =
        (row(norm.running_mean.value_sync()), row(norm.running_var.value_sync()));
    let scale = (variance + norm.epsilon).sqrt().recip() * norm.gamma.val().unsqueeze();
    (x - mean) * scale + norm.beta.val().unsqueeze()
}

/// Applies batch normalisation: by the statistics of the batch if the module trains (on an autodiff device with the
/// training flag set, as in Burn) and there are rows, otherwise by running means and variances.
pub(crate) fn normalised(norm: &BatchNorm, x: Tensor<2>) -> Tensor<2> {
    let trains = x.dims()[0] > 0 && x.is_autodiff() && norm.training.is_enabled();
    if trains { norm.forward(x) } else { running(norm, x) }
}

/// Describes an [`Mlp`].
#[derive(Config, Debug)]
pub struct MlpConfig {
    /// Feature sizes of the input, the hidden layers and the output.
    pub widths: Vec<usize>,
    /// Whether biases are added.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Multi-layer perceptron: linear layers with ReLU between them.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::MlpConfig;
/// let mlp = MlpConfig::new(vec![4, 16, 2]).init(&Device::flex());
/// assert_eq!(mlp.forward(Tensor::ones([3, 4], &Device::flex())).dims(), [3, 2]);
/// ```
#[derive(Module, Debug)]
pub struct Mlp {
    /// The layers, input first.
    pub layers: Vec<Linear>,
}

impl MlpConfig {
    /// Initializes weights by Glorot, biases with 0.
    ///
    /// # Errors
    /// `widths` has fewer than two entries.
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

    /// Computes `[rows, last of widths]` from `[rows, first of widths]`.
    #[track_caller]
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let last = self.layers.len() - 1;
        self.layers.iter().enumerate().fold(x, |x, (i, layer)| {
            apply_then(layer, x, if i < last { Activation::Relu } else { Activation::None })
        })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
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
        for device in burn_gnn_testutil::devices() {
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

    /// The gradient is 0 for any `eps`, and for numbers that rounding has made negative.
    #[test]
    fn a_root_has_no_gradient_at_0() {
        for device in burn_gnn_testutil::devices() {
            let [y, grad] = both(&device, |x| root(x, 1e-30), &[0.0, -1e-17, 4.0]);
            assert_eq!(y, [1e-15, 1e-15, 2.0], "{device:?}");
            assert_eq!(grad, [0.0, 0.0, 0.25], "{device:?}");
        }
    }
}
