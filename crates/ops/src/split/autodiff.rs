//! The gradient of a tensor that was cut: those of its parts, one behind the other, which are
//! [kept](crate::pending_gradients) by the plan.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};
use burn::tensor::Shape;

use super::backend::{SplitBackend, SplitPlan};

#[derive(Debug)]
struct Whole;

impl<B: SplitBackend> Backward<B, 1> for Whole {
    /// The plan and the shape of the whole.
    type State = (SplitPlan, Shape);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let due = grads.consume::<B>(&ops.node);
        let (plan, shape) = ops.state;
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::split_join(due, plan, shape));
        }
    }
}

#[derive(Debug)]
struct Part;

impl<B: SplitBackend> Backward<B, 1> for Part {
    type State = (SplitPlan, usize);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let grad = grads.consume::<B>(&ops.node);
        let (plan, part) = ops.state;
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::split_put(grad, plan, part));
        }
    }
}

impl<B: SplitBackend, C: CheckpointStrategy> SplitBackend for Autodiff<B, C> {
    fn split_whole(x: FloatTensor<Self>, plan: SplitPlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let state = (plan.clone(), x.shape());
        let out = B::split_whole(x, plan);
        match Whole.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
    fn split_part(whole: FloatTensor<Self>, plan: SplitPlan, part: usize) -> FloatTensor<Self> {
        let (whole, node) = whole.into_parts();
        let out = B::split_part(whole, plan.clone(), part);
        match Part.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((plan, part), out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
}
