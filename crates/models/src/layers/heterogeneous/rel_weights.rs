//! Defines weights per relation: separate, or decomposed into bases or blocks.

use burn::config::Config;
use burn::module::Param;
use burn::tensor::Tensor;

use crate::error::ModelError;
use crate::params::init::Init;

/// How relations (or other types) share weights, which limits the number of parameters.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum RelWeights {
    /// One matrix per relation.
    Full,
    /// `W_r = Σ_b coeff[r, b] · B_b` with this many bases.
    Basis(usize),
    /// `W_r` is block-diagonal with this many blocks of `d_input / B × d_output / B`.
    BlockDiagonal(usize),
}

/// Matrices, and the coefficients of bases.
pub(crate) type Weights = (Param<Tensor<3>>, Option<Param<Tensor<2>>>);

impl RelWeights {
    /// Initializes weights for `r` types: `[r, i, o]`; bases `[B, i, o]` with coefficients `[r, B]`; blocks
    /// `[r · B, i / B, o / B]`.
    pub(crate) fn init(self, [r, i, o]: [usize; 3], init: Init<'_>) -> Result<Weights, ModelError> {
        let weight3 = |shape: [usize; 3]| init.weight(shape, (shape[1], shape[2]));
        Ok(match self {
            Self::Full => (weight3([r, i, o]), None),
            Self::Basis(b) => {
                ModelError::check_sizes(&[("bases", b)], 0.0)?;
                (weight3([b, i, o]), Some(init.matrix([r, b])))
            }
            Self::BlockDiagonal(b) => {
                ModelError::check_sizes(&[("blocks", b)], 0.0)?;
                ModelError::check_divides(("blocks", b), ("d_input", i))?;
                ModelError::check_divides(("blocks", b), ("d_output", o))?;
                (weight3([r * b, i / b, o / b]), None)
            }
        })
    }
}
