//! The hand-written gradient of cross entropy.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::CrossEntropyBackend;
use super::plan::CrossEntropyPlan;

#[derive(Debug)]
struct CrossEntropy;

impl<B: CrossEntropyBackend> Backward<B, 1> for CrossEntropy {
    type State = (CrossEntropyPlan, NodeId, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let [parent] = ops.parents;
        let (plan, logits, stats) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let logits = checkpointer.retrieve_node_output(logits);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::cross_entropy_grad(grad, stats, logits, plan));
        }
    }
}

impl<B: CrossEntropyBackend, C: CheckpointStrategy> CrossEntropyBackend for Autodiff<B, C> {
    fn cross_entropy(logits: FloatTensor<Self>, plan: CrossEntropyPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        match CrossEntropy.prepare::<C>([logits.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let kept = prep.checkpoint(&logits);
                let (loss, stats) = B::cross_entropy(logits.into_primitive(), plan.clone());
                (prep.finish((plan, kept, stats.clone()), loss), FloatTensor::<Self>::new(stats))
            }
            OpsKind::UnTracked(prep) => {
                let (loss, stats) = B::cross_entropy(logits.into_primitive(), plan);
                (prep.finish(loss), FloatTensor::<Self>::new(stats))
            }
        }
    }

    /// Gets here only if someone asks for the gradient of a gradient.
    fn cross_entropy_grad(
        grad: FloatTensor<Self>,
        stats: FloatTensor<Self>,
        logits: FloatTensor<Self>,
        plan: CrossEntropyPlan,
    ) -> FloatTensor<Self> {
        assert!(
            ![&grad, &stats, &logits].iter().any(|x| x.is_tracked()),
            "cross_entropy_rows: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
        );
        FloatTensor::<Self>::new(B::cross_entropy_grad(grad.into_primitive(), stats.into_primitive(), logits.into_primitive(), plan))
    }
}
