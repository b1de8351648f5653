//! The backend extension of cross entropy.

use burn::backend::tensor::FloatTensor;
// Named by the code that the attribute writes.
#[allow(unused_imports)]
use burn::backend::Autodiff;
use burn::backend::{Backend, backend_extension};

use super::plan::CrossEntropyPlan;
use super::reference;

/// Cross entropy of chosen rows. Default bodies are plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait CrossEntropyBackend: Backend {
    /// The loss `[1]`, and for each chosen row its largest logit and 1 / Σ exp(logit - largest), `[rows, 2]`.
    #[fusion(meta = |logits, plan| plan.result_specs(logits.dtype))]
    fn cross_entropy(logits: FloatTensor<Self>, plan: CrossEntropyPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        reference::forward::<Self>(logits, &plan)
    }

    /// Gradient of the logits from that of the loss, `[1]`.
    #[fusion(dtype = logits, shape = logits)]
    fn cross_entropy_grad(
        grad: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        logits: FloatTensor<Self>,
        plan: CrossEntropyPlan,
    ) -> FloatTensor<Self> {
        reference::gradient::<Self>(grad, stats, logits, &plan)
    }

    /// The loss in plain primitives on every backend, differentiated by Burn itself: the oracle of tests.
    #[fusion(default)]
    fn cross_entropy_reference(logits: FloatTensor<Self>, plan: CrossEntropyPlan) -> FloatTensor<Self> {
        reference::forward::<Self>(logits, &plan).0
    }
}
