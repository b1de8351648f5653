//! Hand-written gradients of typed products.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::TypedBackend;
use super::plan::TypedPlan;

#[derive(Debug)]
struct TypedBackward;

impl<B: TypedBackend> Backward<B, 2> for TypedBackward {
    /// The plan, and `a` and `b` as far as they were kept.
    type State = (TypedPlan, Option<NodeId>, Option<NodeId>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let [a_node, b_node] = ops.parents;
        let (plan, a, b) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let mut get = |id: Option<NodeId>| -> Option<FloatTensor<B>> { id.map(|id| checkpointer.retrieve_node_output(id)) };
        let (a, b) = (get(a), get(b));
        if let (Some(node), Some(b)) = (a_node, b) {
            grads.register::<B>(node.id, B::typed_mm_grad_a(grad.clone(), b, plan.clone()));
        }
        if let (Some(node), Some(a)) = (b_node, a) {
            grads.register::<B>(node.id, B::typed_mm_grad_b(grad, a, plan));
        }
    }
}

/// Gradients are computed below autodiff; they get here only if someone asks for the gradient of a gradient.
fn refuse_second_order(tracked: bool) {
    assert!(!tracked, "segment_mm: the gradient of a gradient is not implemented; detach the inputs of the first gradient");
}

impl<B: TypedBackend, C: CheckpointStrategy> TypedBackend for Autodiff<B, C> {
    fn typed_mm(a: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        let (a_tracked, b_tracked) = (a.is_tracked(), b.is_tracked());
        match TypedBackward.prepare::<C>([a.node(), b.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let kept_a = b_tracked.then(|| prep.checkpoint(&a));
                let kept_b = a_tracked.then(|| prep.checkpoint(&b));
                let out = B::typed_mm(a.into_primitive(), b.into_primitive(), plan.clone());
                prep.finish((plan, kept_a, kept_b), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::typed_mm(a.into_primitive(), b.into_primitive(), plan)),
        }
    }

    fn typed_mm_grad_a(grad: FloatTensor<Self>, b: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        refuse_second_order(grad.is_tracked() || b.is_tracked());
        FloatTensor::<Self>::new(B::typed_mm_grad_a(grad.into_primitive(), b.into_primitive(), plan))
    }

    fn typed_mm_grad_b(grad: FloatTensor<Self>, a: FloatTensor<Self>, plan: TypedPlan) -> FloatTensor<Self> {
        refuse_second_order(grad.is_tracked() || a.is_tracked());
        FloatTensor::<Self>::new(B::typed_mm_grad_b(grad.into_primitive(), a.into_primitive(), plan))
    }
}
