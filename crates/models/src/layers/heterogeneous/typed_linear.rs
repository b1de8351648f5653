//! Implements a linear layer per type.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{TypeIndex, gather_mm, matmul_rows};

use crate::error::ModelError;
use crate::layers::heterogeneous::rel_weights::RelWeights;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`TypedLinear`].
#[derive(Config, Debug)]
pub struct TypedLinearConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// Number of types.
    pub num_types: usize,
    /// How types share weights.
    #[config(default = "RelWeights::Full")]
    pub weights: RelWeights,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Linear layer with one weight per type, for features of several node or edge types in one tensor:
/// `y[i] = x[i] W_type(i)`.
///
/// # Shapes
/// `x: [rows, d_input]`, one type per row (see [`TypeIndex`]), output `[rows, d_output]`.
///
/// # Cost
/// One [`gather_mm`], which copies no matrix per row. Bases are first combined to one matrix per type; blocks are copied
/// to the diagonal of a full matrix.
///
/// # Source
/// `TypedLinear` of DGL; bases and blocks are those of Schlichtkrull et al., ESWC 2018.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_models::TypedLinearConfig;
/// use burn_gnn_ops::TypeIndex;
/// let device = Device::flex();
/// let linear = TypedLinearConfig::new(4, 2, 3).init(&device); // 4 to 2 features, a matrix for each of three types
/// let y = linear.forward(Tensor::ones([5, 4], &device), &TypeIndex::new(&[0u8, 2, 2, 1, 0], 3));
/// assert_eq!(y.dims(), [5, 2]);
/// ```
#[derive(Module, Debug)]
pub struct TypedLinear {
    /// `[T, d_input, d_output]`; bases: `[B, d_input, d_output]`; blocks: `[T · B, d_input / B, d_output / B]`.
    pub weight: Param<Tensor<3>>,
    /// Bases only: `[T, B]`.
    pub coeff: Option<Param<Tensor<2>>>,
    #[module(skip)]
    weights: RelWeights,
    #[module(skip)]
    num_types: usize,
}

impl TypedLinearConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default).
    ///
    /// # Errors
    /// The number of bases or blocks is 0, or blocks do not divide both feature sizes.
    pub fn try_init(&self, device: &Device) -> Result<TypedLinear, ModelError> {
        let shape = [self.num_types, self.d_input, self.d_output];
        let init = Init { initializer: &self.initializer, device };
        let (weight, coeff) = self.weights.init(shape, init)?;
        Ok(TypedLinear { weight, coeff, weights: self.weights, num_types: self.num_types })
    }
}

panicking_init!(TypedLinearConfig => TypedLinear);

impl TypedLinear {
    /// Multiplies every row by the matrix of its type.
    ///
    /// # Panics
    /// `types` does not have one entry per row or has another number of types, or `x` has another feature size.
    #[track_caller]
    pub fn forward(&self, x: Tensor<2>, types: &TypeIndex) -> Tensor<2> {
        gather_mm(x, self.matrices(), types)
    }

    /// Returns the matrix of each type, `[T, d_input, d_output]`.
    pub fn matrices(&self) -> Tensor<3> {
        let weight = self.weight.val();
        let ([_, i, o], types) = (weight.dims(), self.num_types);
        match (self.weights, &self.coeff) {
            (RelWeights::BlockDiagonal(b), _) => {
                let diagonal =
                    Tensor::<2>::eye(b, &weight.device().without_autodiff()).cast(weight.dtype());
                let blocks: Tensor<5> =
                    weight.reshape([types, b, i, 1, o]) * diagonal.reshape([1, b, 1, b, 1]);
                blocks.reshape([types, b * i, b * o])
            }
            (_, Some(coeff)) => {
                let [bases, ..] = weight.dims();
                matmul_rows(coeff.val(), weight.reshape([bases, i * o])).reshape([types, i, o])
            }
            _ => weight,
        }
    }
}

impl Pretrained for TypedLinear {
    fn param_mapping(&self, _from: Framework, path: &str) -> ParamMapping {
        let [_, i, o] = self.weight.val().dims();
        match (path, self.weights) {
            // DGL stores all blocks of a type in one row.
            ("weight", RelWeights::BlockDiagonal(b)) => {
                ParamMapping::same("W").shaped([self.num_types, b * i * o])
            }
            ("weight", _) => ParamMapping::same("W"),
            _ => ParamMapping::same(path),
        }
    }
}
