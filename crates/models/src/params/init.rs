//! Initializes parameters.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_ops::{Stream, glorot_uniform, next_stream, normal, uniform_rows};

use crate::params::autodiff::leaf_like;

/// Initializer and device of the weights of a layer.
#[derive(Clone, Copy)]
pub struct Init<'a> {
    /// Initializer of weights.
    pub initializer: &'a Initializer,
    /// Device of the weights.
    pub device: &'a Device,
}

impl<'a> Init<'a> {
    /// Uniform Glorot initialization.
    pub fn glorot(device: &'a Device) -> Self {
        Self { initializer: &Initializer::XavierUniform { gain: 1.0 }, device }
    }

    /// Initializes a weight from the next random stream, so that in a [`seeded`](crate::seeded) scope it is a function of
    /// the seed.
    pub fn weight<const D: usize>(
        &self,
        shape: [usize; D],
        (fan_in, fan_out): (usize, usize),
    ) -> Param<Tensor<D>> {
        let stream = || next_stream(self.device);
        let uniform = |low, high| {
            let bounds =
                uniform_rows(stream(), None, shape[0], shape[1..].iter().product(), low, high);
            TensorData::from_bytes(bounds.bytes().clone(), shape, DType::F64)
        };
        let of_deviation = |deviation: f64| {
            let bound = 3f64.sqrt() * deviation;
            uniform(-bound, bound)
        };
        let kaiming = |gain: f64, fan_out_only: bool| {
            gain / (if fan_out_only { fan_out } else { fan_in }.max(1) as f64).sqrt()
        };
        let xavier = |gain: f64| gain * (2.0 / (fan_in + fan_out).max(1) as f64).sqrt();
        let data = match *self.initializer {
            Initializer::Constant { value } => TensorData::full(shape, value),
            Initializer::Ones => TensorData::full(shape, 1.0),
            Initializer::Zeros => TensorData::full(shape, 0.0),
            Initializer::Uniform { min, max } => uniform(min, max),
            Initializer::Normal { mean, std } => normal(stream(), mean, std, shape),
            Initializer::KaimingUniform { gain, fan_out_only } => {
                of_deviation(kaiming(gain, fan_out_only))
            }
            Initializer::KaimingNormal { gain, fan_out_only } => {
                normal(stream(), 0.0, kaiming(gain, fan_out_only), shape)
            }
            Initializer::XavierUniform { gain: 1.0 } => {
                glorot_uniform(stream(), fan_in, fan_out, shape)
            }
            Initializer::XavierUniform { gain } => of_deviation(xavier(gain)),
            Initializer::XavierNormal { gain } => normal(stream(), 0.0, xavier(gain), shape),
            Initializer::Orthogonal { gain } => orthogonal(stream(), gain, shape),
        };
        Param::from_tensor(Tensor::from_data(data, self.device))
    }

    /// Initializes a weight `[d_input, d_output]`.
    pub fn matrix(&self, [d_input, d_output]: [usize; 2]) -> Param<Tensor<2>> {
        self.weight([d_input, d_output], (d_input, d_output))
    }

    /// Initializes a linear layer with a bias of 0.
    pub(crate) fn linear(&self, [d_input, d_output]: [usize; 2], bias: bool) -> Linear {
        let weight = self.matrix([d_input, d_output]);
        Linear { weight, bias: bias.then(|| zeros(d_output, self.device)) }
    }
}

/// Initializes orthonormal rows (or columns, if there are fewer columns) of the matrix `[shape[0], product of the rest]`,
/// multiplied by `gain`: normal random vectors, orthogonalised by Gram-Schmidt, twice for precision.
fn orthogonal<const D: usize>(stream: Stream, gain: f64, shape: [usize; D]) -> TensorData {
    let (rows, cols) = (shape[0], shape[1..].iter().product::<usize>());
    let (count, length) = (rows.min(cols), rows.max(cols));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    for i in 0..count as u64 {
        let mut v: Vec<f64> = (0..length as u64).map(|c| stream.normal(i, c)).collect();
        for _ in 0..2 {
            for u in &vectors {
                let dot: f64 = u.iter().zip(&v).map(|(a, b)| a * b).sum();
                v.iter_mut().zip(u).for_each(|(a, b)| *a -= dot * b);
            }
        }
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        v.iter_mut().for_each(|a| *a /= norm);
        vectors.push(v);
    }
    let entry =
        |r: usize, c: usize| gain * if rows <= cols { vectors[r][c] } else { vectors[c][r] };
    let data: Vec<f64> = (0..rows * cols).map(|i| entry(i / cols, i % cols)).collect();
    TensorData::new(data, shape)
}

/// Initializes rows of an embedding, uniform in `±sqrt(6 / (total + cols))`: Glorot for a one-hot input of size `total`,
/// of which this rank may have some rows only. Random numbers are keyed by the original ids `ids` (`None`: row numbers).
pub(crate) fn rows(
    stream: Stream,
    ids: Option<&[u64]>,
    shape: [usize; 2],
    total: u64,
    device: &Device,
) -> Param<Tensor<2>> {
    let [rows, cols] = shape;
    let bound = (6.0 / (total + cols as u64).max(1) as f64).sqrt();
    Param::from_tensor(Tensor::from_data(
        uniform_rows(stream, ids, rows, cols, -bound, bound),
        device,
    ))
}

pub(crate) fn zeros(cols: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::zeros([cols], device))
}

struct Cast(FloatDType);

impl ModuleMapper for Cast {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dtype = self.0;
        param.map(|t| leaf_like(&t, t.clone().without_autodiff().cast(dtype)))
    }
}

/// Casts every float parameter of a module to another precision. The default precision of a device can be set only once
/// per process (`Device::configure`); this function has no such limit.
pub fn to_dtype<M: Module>(module: M, dtype: FloatDType) -> M {
    module.map(&mut Cast(dtype))
}

/// Implements `init` of a config, which panics if `try_init` returns an error.
macro_rules! panicking_init {
    ($config:ident => $module:ident) => {
        impl $config {
            /// As [`try_init`](Self::try_init), but panics.
            ///
            /// # Panics
            /// [`try_init`](Self::try_init) returns an error.
            #[track_caller]
            pub fn init(&self, device: &burn::tensor::Device) -> $module {
                burn_gnn_graph::internal::OrPanic::or_panic(self.try_init(device))
            }
        }
    };
}

pub(crate) use panicking_init;
