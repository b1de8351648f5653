//! What one epilogue does, as a plain value.

use crate::Activation;
use crate::dropout::DropoutPlan;

/// Shape, activation and dropout of one epilogue.
#[derive(Clone, Debug)]
pub(crate) struct EpiloguePlan {
    rows: usize,
    columns: usize,
    activation: Activation,
    dropout: Option<DropoutPlan>,
}

impl EpiloguePlan {
    pub(crate) fn new(rows: usize, columns: usize, activation: Activation, dropout: Option<DropoutPlan>) -> Self {
        Self { rows, columns, activation, dropout }
    }
    /// Rows and columns.
    pub(crate) fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }
    /// Activation.
    pub(crate) fn activation(&self) -> Activation {
        self.activation
    }
    /// Dropout after it.
    pub(crate) fn dropout(&self) -> Option<&DropoutPlan> {
        self.dropout.as_ref()
    }
    /// Whether nothing happens but the bias.
    pub(crate) fn is_identity(&self) -> bool {
        self.activation == Activation::None && self.dropout.is_none()
    }
    /// Whether backward reads the result.
    pub(crate) fn keeps_output(&self) -> bool {
        matches!(self.activation, Activation::LeakyRelu(_) | Activation::Elu(_))
    }
    /// Whether backward reads which entries are open.
    pub(crate) fn keeps_open(&self) -> bool {
        self.activation == Activation::Relu
    }
}
