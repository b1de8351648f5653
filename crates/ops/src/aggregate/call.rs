//! Describes the gradient of weighted aggregation: which gradients are computed, and from which tensors.

use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::AggregatePlan;

use crate::operator::{GnnBackend, Tensors};

/// Gradients of weighted aggregation. Inputs: the gradient of the result; the result if there is an activation; `x` for
/// the gradient of the weights; the weights, if there are any, for the gradient of `x`.
#[derive(Clone, Debug)]
pub(crate) struct AggregateGrad {
    pub(crate) plan: AggregatePlan,
    /// Whether the gradient of `x` is computed.
    pub(crate) x: bool,
    /// Whether the gradient of the weights is computed.
    pub(crate) weight: bool,
    /// Whether the gradient of the bias is computed.
    pub(crate) bias: bool,
}

/// Inputs of [`AggregateGrad`].
pub(crate) struct AggregateGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) out: Option<FloatTensor<B>>,
    pub(crate) x: Option<FloatTensor<B>>,
    pub(crate) weight: Option<FloatTensor<B>>,
}

impl AggregateGrad {
    /// Names the inputs.
    pub(crate) fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> AggregateGradInputs<B> {
        let mut inputs = inputs.read();
        AggregateGradInputs {
            grad: inputs.float(),
            out: inputs.float_if(self.plan.keeps_result()),
            x: inputs.float_if(self.weight),
            weight: inputs.float_if(self.plan.weighted() && self.x),
        }
    }
}
