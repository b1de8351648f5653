//! Plans an epilogue: activation and dropout of a result.

use super::dropout::{DROPOUT_ARGS, DropoutPlan, RowDropout};
use crate::activation::Activation;
use crate::error::PlanError;

const NAME: &str = "bias_activation";

/// Shape, activation and dropout of one epilogue.
#[derive(Clone, Debug)]
pub struct EpiloguePlan {
    rows: usize,
    columns: usize,
    activation: Activation,
    dropout: Option<DropoutPlan>,
}

impl EpiloguePlan {
    /// Epilogue of a `[rows, columns]` matrix.
    ///
    /// # Errors
    /// A parameter of the activation out of range; a dropout probability outside `[0, 1)`; dropout ids that are not one
    /// per row.
    pub fn new(
        [rows, columns]: [usize; 2],
        activation: Activation,
        dropout: Option<&RowDropout>,
    ) -> Result<Self, PlanError> {
        activation.check(NAME)?;
        let plan = |d: &RowDropout| d.plan(NAME, DROPOUT_ARGS, "one per row of `x`", rows);
        Ok(Self { rows, columns, activation, dropout: dropout.map(plan).transpose()?.flatten() })
    }
    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }
    /// Activation.
    #[inline]
    pub fn activation(&self) -> Activation {
        self.activation
    }
    /// Dropout after the activation.
    pub fn dropout(&self) -> Option<&DropoutPlan> {
        self.dropout.as_ref()
    }
    /// Whether there is neither activation nor dropout.
    pub fn is_identity(&self) -> bool {
        self.activation == Activation::None && self.dropout.is_none()
    }
    /// Whether backward reads the result.
    pub fn keeps_output(&self) -> bool {
        matches!(self.activation, Activation::LeakyRelu(_) | Activation::Elu(_))
    }
    /// Whether backward reads a mask of the entries that ReLU and dropout let through.
    pub fn keeps_open(&self) -> bool {
        self.activation == Activation::Relu
    }
}
