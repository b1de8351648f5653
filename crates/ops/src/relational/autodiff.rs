//! Hand-written gradients of relational aggregation.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::RelationalBackend;
use super::plan::{EdgeNorm, RelationalPlan};

/// Nodes of what backward reads.
#[derive(Clone, Debug)]
struct State {
    plan: RelationalPlan,
    x: Option<NodeId>,
    weight: Option<NodeId>,
    norm: Option<NodeId>,
}

#[derive(Debug)]
struct Plain;
#[derive(Debug)]
struct Scaled;

/// Registers the gradients of `x`, `weight` and (with `Scaled`) `norm`.
fn backward<B: RelationalBackend, const N: usize>(ops: Ops<State, N>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
    let State { plan, x, weight, norm } = ops.state;
    let grad = grads.consume::<B>(&ops.node);
    let mut get = |id: Option<NodeId>| -> Option<FloatTensor<B>> { id.map(|id| checkpointer.retrieve_node_output(id)) };
    let (x, weight) = (get(x), get(weight));
    let norm = get(norm).map_or(EdgeNorm::One, EdgeNorm::Each);
    let mut parents = ops.parents.into_iter();
    let (x_node, weight_node, norm_node) = (parents.next().flatten(), parents.next().flatten(), parents.next().flatten());
    if let (Some(node), Some(x), Some(weight)) = (norm_node, &x, &weight) {
        grads.register::<B>(node.id, B::relational_grad_norm(grad.clone(), x.clone(), weight.clone(), plan.clone()));
    }
    // A tracked parent's gradient reads the other operand, which was kept for it.
    match (x_node, weight_node, x, weight) {
        (Some(x_node), Some(weight_node), Some(x), Some(weight)) => {
            let (d_x, d_weight) = B::relational_grad_both(grad, x, weight, norm, plan);
            grads.register::<B>(x_node.id, d_x);
            grads.register::<B>(weight_node.id, d_weight);
        }
        (Some(node), _, _, Some(weight)) => grads.register::<B>(node.id, B::relational_grad_x(grad, weight, norm, plan)),
        (_, Some(node), Some(x), _) => grads.register::<B>(node.id, B::relational_grad_weight(grad, x, norm, plan)),
        _ => (),
    }
}

impl<B: RelationalBackend> Backward<B, 2> for Plain {
    type State = State;
    fn backward(self, ops: Ops<State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        backward::<B, 2>(ops, grads, checkpointer);
    }
}

impl<B: RelationalBackend> Backward<B, 3> for Scaled {
    type State = State;
    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        backward::<B, 3>(ops, grads, checkpointer);
    }
}

/// Gradients are computed below autodiff; they get here only if someone asks for the gradient of a gradient.
fn refuse_second_order(tracked: &[bool]) {
    assert!(
        !tracked.contains(&true),
        "relational_aggregate: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
    );
}

fn is_tracked<B: RelationalBackend, C: CheckpointStrategy>(norm: &EdgeNorm<Autodiff<B, C>>) -> bool {
    matches!(norm, EdgeNorm::Each(norm) if norm.is_tracked())
}

fn inner<B: RelationalBackend, C: CheckpointStrategy>(norm: EdgeNorm<Autodiff<B, C>>) -> EdgeNorm<B> {
    match norm {
        EdgeNorm::One => EdgeNorm::One,
        EdgeNorm::Each(norm) => EdgeNorm::Each(norm.into_primitive()),
    }
}

impl<B: RelationalBackend, C: CheckpointStrategy> RelationalBackend for Autodiff<B, C> {
    fn relational(x: FloatTensor<Self>, weight: FloatTensor<Self>, norm: EdgeNorm<Self>, plan: RelationalPlan) -> FloatTensor<Self> {
        let tracked = (x.is_tracked(), weight.is_tracked(), is_tracked::<B, C>(&norm));
        let (keep_x, keep_weight, keep_norm) = (tracked.1 || tracked.2, tracked.0 || tracked.2, tracked.0 || tracked.1);
        match norm {
            EdgeNorm::One => match Plain.prepare::<C>([x.node(), weight.node()]).compute_bound().stateful() {
                OpsKind::Tracked(mut prep) => {
                    let kept_x = keep_x.then(|| prep.checkpoint(&x));
                    let kept_weight = keep_weight.then(|| prep.checkpoint(&weight));
                    let out = B::relational(x.into_primitive(), weight.into_primitive(), EdgeNorm::One, plan.clone());
                    prep.finish(State { plan, x: kept_x, weight: kept_weight, norm: None }, out)
                }
                OpsKind::UnTracked(prep) => prep.finish(B::relational(x.into_primitive(), weight.into_primitive(), EdgeNorm::One, plan)),
            },
            EdgeNorm::Each(norm) => match Scaled.prepare::<C>([x.node(), weight.node(), norm.node()]).compute_bound().stateful() {
                OpsKind::Tracked(mut prep) => {
                    let kept_x = keep_x.then(|| prep.checkpoint(&x));
                    let kept_weight = keep_weight.then(|| prep.checkpoint(&weight));
                    let kept_norm = keep_norm.then(|| prep.checkpoint(&norm));
                    let norm = EdgeNorm::Each(norm.into_primitive());
                    let out = B::relational(x.into_primitive(), weight.into_primitive(), norm, plan.clone());
                    prep.finish(State { plan, x: kept_x, weight: kept_weight, norm: kept_norm }, out)
                }
                OpsKind::UnTracked(prep) => {
                    let norm = EdgeNorm::Each(norm.into_primitive());
                    prep.finish(B::relational(x.into_primitive(), weight.into_primitive(), norm, plan))
                }
            },
        }
    }

    fn relational_grad_x(
        grad: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        refuse_second_order(&[grad.is_tracked(), weight.is_tracked(), is_tracked::<B, C>(&norm)]);
        let out = B::relational_grad_x(grad.into_primitive(), weight.into_primitive(), inner::<B, C>(norm), plan);
        FloatTensor::<Self>::new(out)
    }

    fn relational_grad_weight(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        refuse_second_order(&[grad.is_tracked(), x.is_tracked(), is_tracked::<B, C>(&norm)]);
        FloatTensor::<Self>::new(B::relational_grad_weight(grad.into_primitive(), x.into_primitive(), inner::<B, C>(norm), plan))
    }

    fn relational_grad_both(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        norm: EdgeNorm<Self>,
        plan: RelationalPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        refuse_second_order(&[grad.is_tracked(), x.is_tracked(), weight.is_tracked(), is_tracked::<B, C>(&norm)]);
        let norm = inner::<B, C>(norm);
        let (d_x, d_w) = B::relational_grad_both(grad.into_primitive(), x.into_primitive(), weight.into_primitive(), norm, plan);
        (FloatTensor::<Self>::new(d_x), FloatTensor::<Self>::new(d_w))
    }

    fn relational_grad_norm(
        grad: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: RelationalPlan,
    ) -> FloatTensor<Self> {
        refuse_second_order(&[grad.is_tracked(), x.is_tracked(), weight.is_tracked()]);
        FloatTensor::<Self>::new(B::relational_grad_norm(grad.into_primitive(), x.into_primitive(), weight.into_primitive(), plan))
    }
}
