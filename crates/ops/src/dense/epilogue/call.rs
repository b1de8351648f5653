//! Describes the gradient of an epilogue: which gradients are computed, and from which tensors.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn_gnn_plan::EpiloguePlan;

use crate::operator::{GnnBackend, Tensors};

/// The gradients of `x` and, if it is wanted, of the bias, from that of the result and what [`EpiloguePlan`] keeps: the
/// result, which entries are open, or nothing.
#[derive(Clone, Debug)]
pub(crate) struct EpilogueGrad {
    pub(crate) plan: EpiloguePlan,
    pub(crate) bias: bool,
}

/// What the gradient is computed from.
pub(crate) struct EpilogueGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) out: Option<FloatTensor<B>>,
    pub(crate) open: Option<IntTensor<B>>,
}

impl EpilogueGrad {
    /// The inputs by name.
    pub(crate) fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> EpilogueGradInputs<B> {
        let mut inputs = inputs.read();
        EpilogueGradInputs {
            grad: inputs.float(),
            out: inputs.float_if(self.plan.keeps_output()),
            open: inputs.int(),
        }
    }
}
