//! Describes the gradient of an epilogue: which gradients are computed, and from which tensors.

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn_gnn_plan::EpiloguePlan;

use crate::operator::{GnnBackend, Tensors};

/// Gradients of `x` and, if `bias`, of the bias. Inputs: the gradient of the result, and the tensor that
/// [`EpiloguePlan`] saves: the result, the mask of open entries, or none.
#[derive(Clone, Debug)]
pub(crate) struct EpilogueGrad {
    pub(crate) plan: EpiloguePlan,
    pub(crate) bias: bool,
}

/// Inputs of [`EpilogueGrad`].
pub(crate) struct EpilogueGradInputs<B: GnnBackend> {
    pub(crate) grad: FloatTensor<B>,
    pub(crate) out: Option<FloatTensor<B>>,
    pub(crate) open: Option<IntTensor<B>>,
}

impl EpilogueGrad {
    /// Names the inputs.
    pub(crate) fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> EpilogueGradInputs<B> {
        let mut inputs = inputs.read();
        EpilogueGradInputs {
            grad: inputs.float(),
            out: inputs.float_if(self.plan.keeps_output()),
            open: inputs.int(),
        }
    }
}
