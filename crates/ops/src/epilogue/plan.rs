//! What one epilogue does, as a plain value.

#[cfg(feature = "fusion")]
use burn::backend::fusion::custom::TensorSpec;
#[cfg(feature = "fusion")]
use burn::tensor::DType;

use crate::Activation;
use crate::dropout::DropoutPlan;

/// Shape, activation and dropout of one epilogue.
#[derive(Clone, Debug)]
pub struct EpiloguePlan {
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
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }
    /// Which entries are open, before it is computed: as the kernels for graphics processors have it, the only ones behind fusion.
    #[cfg(feature = "fusion")]
    pub(crate) fn open_spec(&self) -> TensorSpec {
        TensorSpec::new([self.rows * self.columns.div_ceil(4)].into(), DType::U32)
    }
    /// Gradients of the rows and of the bias, before they are computed.
    #[cfg(feature = "fusion")]
    pub(crate) fn gradient_specs(&self, bias: bool, dtype: DType) -> (TensorSpec, TensorSpec) {
        let bias = if bias { self.columns } else { 0 };
        (TensorSpec::new(self.shape().into(), dtype), TensorSpec::new([bias].into(), dtype))
    }
    /// Activation.
    pub fn activation(&self) -> Activation {
        self.activation
    }
    /// Dropout after it.
    pub fn dropout(&self) -> Option<&DropoutPlan> {
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
