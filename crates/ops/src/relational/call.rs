//! Describes the gradient of relational aggregation: which gradients are computed, and from which tensors.

use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::RelationalPlan;

use crate::operator::{GnnBackend, Tensors};

/// Gradients of relational aggregation. Inputs: the gradient of the result, and those of `x`, the weights and the
/// factors that the gradients read.
#[derive(Clone, Debug)]
pub(crate) struct RelationalGrad {
    pub(crate) plan: RelationalPlan,
    /// Whether the gradient of `x` is computed.
    pub(crate) x: bool,
    /// Whether the gradient of the weights is computed.
    pub(crate) weight: bool,
    /// Whether the gradient of the factors of edges is computed.
    pub(crate) norm: bool,
    /// Whether edges have factors.
    pub(crate) scaled: bool,
}

/// Inputs of [`RelationalGrad`].
pub(crate) struct RelationalGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) x: Option<FloatTensor<B>>,
    pub(crate) weight: Option<FloatTensor<B>>,
    pub(crate) norm: Option<FloatTensor<B>>,
}

impl RelationalGrad {
    /// Names the inputs.
    pub(crate) fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> RelationalGradInputs<B> {
        let mut inputs = inputs.read();
        RelationalGradInputs {
            grad: inputs.float(),
            x: inputs.float_if(self.weight || self.norm),
            weight: inputs.float_if(self.x || self.norm),
            norm: inputs.float_if(self.scaled && (self.x || self.weight)),
        }
    }
}
