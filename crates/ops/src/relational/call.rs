//! Describes the gradient of relational aggregation: which gradients are computed, and from which tensors.

use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::RelationalPlan;

use crate::operator::{GnnBackend, Tensors};

/// The gradients that are wanted, of `x`, the weights and the factors of edges; from that of the result and what they
/// read of `x`, the weights and, if `scaled`, the factors.
#[derive(Clone, Debug)]
pub(crate) struct RelationalGrad {
    pub(crate) plan: RelationalPlan,
    /// Whether that of `x` is wanted.
    pub(crate) x: bool,
    /// Of the weights.
    pub(crate) weight: bool,
    /// Of the factors of edges.
    pub(crate) norm: bool,
    /// Whether messages have factors.
    pub(crate) scaled: bool,
}

/// What gradients are computed from.
pub(crate) struct RelationalGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) x: Option<FloatTensor<B>>,
    pub(crate) weight: Option<FloatTensor<B>>,
    pub(crate) norm: Option<FloatTensor<B>>,
}

impl RelationalGrad {
    /// The inputs by name.
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
