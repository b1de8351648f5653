//! Describes the gradient of attention: which gradients are computed, and from which tensors.

use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::AttentionPlan;

use crate::operator::{GnnBackend, Tensors};

/// Gradients of attention. Inputs: the gradient of the result, the result, its statistics, and the inputs of attention.
#[derive(Clone, Debug)]
pub(crate) struct AttentionGrad {
    pub(crate) plan: AttentionPlan,
    /// Whether the gradient of `z` is computed.
    pub(crate) z: bool,
    /// Whether the gradient of `a_src`, or of the given scores, is computed.
    pub(crate) first: bool,
    /// Whether the gradient of `a_dst` is computed.
    pub(crate) second: bool,
}

/// Inputs of [`AttentionGrad`].
pub(crate) struct AttentionGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) out: FloatTensor<B>,
    pub(crate) stats: FloatTensor<B>,
    pub(crate) z: FloatTensor<B>,
    /// `a_src`, or the given scores.
    pub(crate) first: FloatTensor<B>,
    /// `a_dst`.
    pub(crate) second: Option<FloatTensor<B>>,
}

impl AttentionGrad {
    /// Names the inputs.
    pub(crate) fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> AttentionGradInputs<B> {
        let mut inputs = inputs.read();
        let mut next = || inputs.float();
        let (grad, out, stats, z, first) = (next(), next(), next(), next(), next());
        AttentionGradInputs {
            grad,
            out,
            stats,
            z,
            first,
            second: inputs.float_if(self.plan.scoring().reads_nodes()),
        }
    }
    /// Shapes of the gradients of all three operands.
    pub(crate) fn shapes(&self) -> [Vec<usize>; 3] {
        let (relation, heads) = (self.plan.relation(), self.plan.heads());
        let first = if self.plan.scoring().reads_nodes() {
            relation.num_src()
        } else {
            relation.num_edges()
        };
        [
            vec![relation.num_src(), heads, self.plan.dim()],
            vec![first, heads],
            vec![relation.num_dst(), heads],
        ]
    }
    /// Selects the values of those operands whose gradients are computed.
    pub(crate) fn wanted<T>(&self, all: [T; 3]) -> Vec<T> {
        all.into_iter()
            .zip([self.z, self.first, self.second])
            .filter_map(|(of, wanted)| wanted.then_some(of))
            .collect()
    }
}
