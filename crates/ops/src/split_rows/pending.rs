//! Collects the gradients of the parts of a split tensor.

use burn::backend::Backend;
use burn::backend::tensor::FloatTensor;
use burn_gnn_plan::SplitPlan;

use crate::pending_gradients::PendingGradients;
use crate::primitives::zeros;

/// A split of a tensor, and the gradients of its parts that have been computed so far.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    plan: SplitPlan,
    pub(crate) grads: PendingGradients,
}

/// Gradients of the parts, in order.
type Parts<B> = Vec<Option<FloatTensor<B>>>;

impl Split {
    pub(crate) fn new(plan: SplitPlan) -> Self {
        Self { plan, grads: PendingGradients::default() }
    }
    /// The parts.
    pub(crate) fn plan(&self) -> &SplitPlan {
        &self.plan
    }
    /// Stores the gradient of a part, and returns the entry to pass on.
    pub(crate) fn keep<B: Backend>(&self, grad: FloatTensor<B>, part: usize) -> FloatTensor<B> {
        let due = zeros::<B>([1], &grad);
        let none = || -> Parts<B> { (0..self.plan.parts()).map(|_| None).collect() };
        self.grads.with(none, |grads| grads[part] = Some(grad));
        due
    }
    /// Takes the stored gradients.
    pub(crate) fn kept<B: Backend>(&self) -> Parts<B> {
        let mut grads = self.grads.take::<Parts<B>>().unwrap_or_default();
        grads.resize_with(self.plan.parts(), || None);
        grads
    }
}
