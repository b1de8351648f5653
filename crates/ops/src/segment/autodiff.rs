//! The hand-written gradient of softmax over segments.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::{SegmentBackend, SegmentPlan};

#[derive(Debug)]
struct SoftmaxBackward;

impl<B: SegmentBackend> Backward<B, 1> for SoftmaxBackward {
    type State = (SegmentPlan, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let (plan, y) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::segment_softmax_grad(grad, y, plan));
        }
    }
}

impl<B: SegmentBackend, C: CheckpointStrategy> SegmentBackend for Autodiff<B, C> {
    fn segment_softmax(x: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        match SoftmaxBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::segment_softmax(x, plan.clone());
                prep.finish((plan, y.clone()), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::segment_softmax(x, plan)),
        }
    }

    fn segment_softmax_grad(grad: FloatTensor<Self>, y: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
        // Gradients are computed below autodiff; they get here only if someone asks for the gradient of one.
        assert!(
            !grad.is_tracked() && !y.is_tracked(),
            "segment_softmax: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
        );
        FloatTensor::<Self>::new(B::segment_softmax_grad(grad.into_primitive(), y.into_primitive(), plan))
    }
}
