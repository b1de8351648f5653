//! The hand-written gradient of attention.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::{AttentionBackend, AttentionKept};
use super::plan::{AttentionPlan, AttentionWants};

/// Inputs are kept by node (checkpointed), the result and its statistics as they are.
#[derive(Clone, Debug)]
struct State<F, const N: usize> {
    plan: AttentionPlan,
    inputs: [NodeId; N],
    out: F,
    stats: F,
}

#[derive(Debug)]
struct Gat;

impl<B: AttentionBackend> Backward<B, 3> for Gat {
    type State = State<FloatTensor<B>, 3>;

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let State { plan, inputs: [z, a_src, a_dst], out, stats } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let [nz, ns, nd] = ops.parents;
        let wants = AttentionWants { z: nz.is_some(), first: ns.is_some(), second: nd.is_some() };
        let z = checkpointer.retrieve_node_output(z);
        let (a_src, a_dst) = (checkpointer.retrieve_node_output(a_src), checkpointer.retrieve_node_output(a_dst));
        let (dz, ds, dd) = B::attention_grad(grad, AttentionKept::Gat(out, stats, z, a_src, a_dst), plan, wants);
        for (node, d) in [(nz, dz), (ns, ds), (nd, dd)] {
            if let Some(node) = node {
                grads.register::<B>(node.id, d);
            }
        }
    }
}

#[derive(Debug)]
struct Edges;

impl<B: AttentionBackend> Backward<B, 2> for Edges {
    type State = State<FloatTensor<B>, 2>;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let State { plan, inputs: [z, logits], out, stats } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let [nz, nl] = ops.parents;
        let wants = AttentionWants { z: nz.is_some(), first: nl.is_some(), second: false };
        let (z, logits) = (checkpointer.retrieve_node_output(z), checkpointer.retrieve_node_output(logits));
        let (dz, dl, _) = B::attention_grad(grad, AttentionKept::Edges(out, stats, z, logits), plan, wants);
        for (node, d) in [(nz, dz), (nl, dl)] {
            if let Some(node) = node {
                grads.register::<B>(node.id, d);
            }
        }
    }
}

fn inner<B: AttentionBackend, C: CheckpointStrategy>(kept: AttentionKept<Autodiff<B, C>>) -> (bool, AttentionKept<B>) {
    match kept {
        AttentionKept::Gat(a, b, c, d, e) => {
            let tracked = [&a, &b, &c, &d, &e].iter().any(|x| x.is_tracked());
            let [a, b, c, d, e] = [a, b, c, d, e].map(|x| x.into_primitive());
            (tracked, AttentionKept::Gat(a, b, c, d, e))
        }
        AttentionKept::Edges(a, b, c, d) => {
            let tracked = [&a, &b, &c, &d].iter().any(|x| x.is_tracked());
            let [a, b, c, d] = [a, b, c, d].map(|x| x.into_primitive());
            (tracked, AttentionKept::Edges(a, b, c, d))
        }
    }
}

impl<B: AttentionBackend, C: CheckpointStrategy> AttentionBackend for Autodiff<B, C> {
    fn attention_gat(
        z: FloatTensor<Self>,
        a_src: FloatTensor<Self>,
        a_dst: FloatTensor<Self>,
        plan: AttentionPlan,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        match Gat.prepare::<C>([z.node(), a_src.node(), a_dst.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let inputs = [prep.checkpoint(&z), prep.checkpoint(&a_src), prep.checkpoint(&a_dst)];
                let (out, stats) = B::attention_gat(z.into_primitive(), a_src.into_primitive(), a_dst.into_primitive(), plan.clone());
                let state = State { plan, inputs, out: out.clone(), stats: stats.clone() };
                (prep.finish(state, out), FloatTensor::<Self>::new(stats))
            }
            OpsKind::UnTracked(prep) => {
                let (out, stats) = B::attention_gat(z.into_primitive(), a_src.into_primitive(), a_dst.into_primitive(), plan);
                (prep.finish(out), FloatTensor::<Self>::new(stats))
            }
        }
    }

    fn attention_edges(z: FloatTensor<Self>, logits: FloatTensor<Self>, plan: AttentionPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        match Edges.prepare::<C>([z.node(), logits.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let inputs = [prep.checkpoint(&z), prep.checkpoint(&logits)];
                let (out, stats) = B::attention_edges(z.into_primitive(), logits.into_primitive(), plan.clone());
                let state = State { plan, inputs, out: out.clone(), stats: stats.clone() };
                (prep.finish(state, out), FloatTensor::<Self>::new(stats))
            }
            OpsKind::UnTracked(prep) => {
                let (out, stats) = B::attention_edges(z.into_primitive(), logits.into_primitive(), plan);
                (prep.finish(out), FloatTensor::<Self>::new(stats))
            }
        }
    }

    /// Gets here only if someone asks for the gradient of a gradient.
    fn attention_grad(
        grad: FloatTensor<Self>,
        kept: AttentionKept<Self>,
        plan: AttentionPlan,
        wants: AttentionWants,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let (tracked, kept) = inner::<B, C>(kept);
        assert!(
            !tracked && !grad.is_tracked(),
            "attention: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
        );
        let (dz, ds, dd) = B::attention_grad(grad.into_primitive(), kept, plan, wants);
        (FloatTensor::<Self>::new(dz), FloatTensor::<Self>::new(ds), FloatTensor::<Self>::new(dd))
    }
}
