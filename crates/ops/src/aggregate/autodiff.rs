//! Hand-written gradients of weighted aggregation.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::reference::nothing;
use super::{AggregateBackend, AggregatePlan};
use crate::Activation;

#[derive(Debug)]
struct AggregateBackward;

#[derive(Clone, Debug)]
struct State<F> {
    plan: AggregatePlan,
    /// The result, if its activation needs it.
    out: Option<F>,
    x: Option<NodeId>,
    weight: Option<NodeId>,
}

impl<B: AggregateBackend> Backward<B, 3> for AggregateBackward {
    type State = State<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let State { plan, out, x, weight } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let out = out.unwrap_or_else(|| nothing::<B>(&grad));
        let [x_node, weight_node, bias_node] = ops.parents;
        if let Some(node) = weight_node {
            let x = x.map(|id| checkpointer.retrieve_node_output(id)).unwrap_or_else(|| nothing::<B>(&grad));
            grads.register::<B>(node.id, B::aggregate_grad_weight(grad.clone(), out.clone(), x, plan.clone()));
        }
        if x_node.is_some() || bias_node.is_some() {
            let weight = weight.map(|id| checkpointer.retrieve_node_output(id)).unwrap_or_else(|| nothing::<B>(&grad));
            let (d_x, d_bias) = B::aggregate_grad(grad, out, weight, plan, x_node.is_some());
            if let Some(node) = x_node {
                grads.register::<B>(node.id, d_x);
            }
            if let Some(node) = bias_node {
                grads.register::<B>(node.id, d_bias);
            }
        }
    }
}

fn refuse_second_order<B: AggregateBackend, C: CheckpointStrategy>(inputs: [&FloatTensor<Autodiff<B, C>>; 3]) {
    let tracked = inputs.iter().any(|x| x.is_tracked());
    assert!(!tracked, "weighted_aggregate: the gradient of a gradient is not implemented; detach the inputs of the first gradient");
}

impl<B: AggregateBackend, C: CheckpointStrategy> AggregateBackend for Autodiff<B, C> {
    fn aggregate(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>, plan: AggregatePlan) -> FloatTensor<Self> {
        let keep_x = plan.weighted() && weight.is_tracked();
        let keep_weight = plan.weighted() && x.is_tracked();
        match AggregateBackward.prepare::<C>([x.node(), weight.node(), bias.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let kept_x = keep_x.then(|| prep.checkpoint(&x));
                let kept_weight = keep_weight.then(|| prep.checkpoint(&weight));
                let out = B::aggregate(x.into_primitive(), weight.into_primitive(), bias.into_primitive(), plan.clone());
                let kept = (plan.activation() != Activation::None).then(|| out.clone());
                prep.finish(State { plan, out: kept, x: kept_x, weight: kept_weight }, out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::aggregate(x.into_primitive(), weight.into_primitive(), bias.into_primitive(), plan)),
        }
    }

    fn aggregate_grad(
        grad: FloatTensor<Self>,
        out: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        plan: AggregatePlan,
        wants_x: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        refuse_second_order::<B, C>([&grad, &out, &weight]);
        let (d_x, d_bias) = B::aggregate_grad(grad.into_primitive(), out.into_primitive(), weight.into_primitive(), plan, wants_x);
        (FloatTensor::<Self>::new(d_x), FloatTensor::<Self>::new(d_bias))
    }

    fn aggregate_grad_weight(
        grad: FloatTensor<Self>,
        out: FloatTensor<Self>,
        x: FloatTensor<Self>,
        plan: AggregatePlan,
    ) -> FloatTensor<Self> {
        refuse_second_order::<B, C>([&grad, &out, &x]);
        FloatTensor::<Self>::new(B::aggregate_grad_weight(grad.into_primitive(), out.into_primitive(), x.into_primitive(), plan))
    }
}
