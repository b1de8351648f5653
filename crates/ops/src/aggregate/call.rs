//! Describes the gradient of weighted aggregation: which gradients are computed, and from which tensors.

use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::AggregatePlan;

use crate::operator::{GnnBackend, Tensors};

/// The gradients that are wanted, from that of the result, the result if there is an activation, `x` if that of the
/// weights is wanted, and the weights if there are any and that of `x` is.
#[derive(Clone, Debug)]
pub(crate) struct AggregateGrad {
    pub(crate) plan: AggregatePlan,
    /// Whether that of `x` is wanted.
    pub(crate) x: bool,
    /// Of the weights.
    pub(crate) weight: bool,
    /// Of the bias.
    pub(crate) bias: bool,
}

/// What gradients are computed from.
pub(crate) struct AggregateGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) out: Option<FloatTensor<B>>,
    pub(crate) x: Option<FloatTensor<B>>,
    pub(crate) weight: Option<FloatTensor<B>>,
}

impl AggregateGrad {
    /// The inputs by name.
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
