//! The hand-written gradient of an epilogue.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};

use super::backend::{EpilogueBackend, EpilogueKept};
use super::plan::EpiloguePlan;

const SECOND: &str = "bias_activation: the gradient of a gradient is not implemented; detach the inputs of the first gradient";

/// The result and what backward reads.
fn forward<B: EpilogueBackend>(x: FloatTensor<B>, bias: Option<FloatTensor<B>>, plan: &EpiloguePlan) -> (FloatTensor<B>, EpilogueKept<B>) {
    if plan.keeps_open() {
        let (out, open) = match bias {
            None => B::epilogue_open(x, plan.clone()),
            Some(bias) => B::epilogue_bias_open(x, bias, plan.clone()),
        };
        return (out, EpilogueKept::Open(open));
    }
    let out = match bias {
        None => B::epilogue(x, plan.clone()),
        Some(bias) => B::epilogue_bias(x, bias, plan.clone()),
    };
    let kept = if plan.keeps_output() { EpilogueKept::Out(out.clone()) } else { EpilogueKept::Nothing };
    (out, kept)
}

#[derive(Debug)]
struct Plain;

impl<B: EpilogueBackend> Backward<B, 1> for Plain {
    type State = (EpiloguePlan, EpilogueKept<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let (plan, kept) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::epilogue_grad(grad, kept, plan, false).0);
        }
    }
}

#[derive(Debug)]
struct Biased;

impl<B: EpilogueBackend> Backward<B, 2> for Biased {
    type State = (EpiloguePlan, EpilogueKept<B>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x, bias] = ops.parents;
        let (plan, kept) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let (dx, db) = B::epilogue_grad(grad, kept, plan, bias.is_some());
        if let Some(node) = x {
            grads.register::<B>(node.id, dx);
        }
        if let Some(node) = bias {
            grads.register::<B>(node.id, db);
        }
    }
}

impl<B: EpilogueBackend, C: CheckpointStrategy> EpilogueBackend for Autodiff<B, C> {
    fn epilogue(x: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        match Plain.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (out, kept) = forward::<B>(x, None, &plan);
                prep.finish((plan, kept), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::epilogue(x, plan)),
        }
    }

    fn epilogue_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        let ((x, x_node), (bias, bias_node)) = (x.into_parts(), bias.into_parts());
        match Biased.prepare::<C>([x_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let (out, kept) = forward::<B>(x, Some(bias), &plan);
                prep.finish((plan, kept), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::epilogue_bias(x, bias, plan)),
        }
    }

    /// Not part of a graph: what autodiff calls belongs to the backend below.
    fn epilogue_open(x: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        assert!(!x.is_tracked(), "{SECOND}");
        let (out, open) = B::epilogue_open(x.into_primitive(), plan);
        (FloatTensor::<Self>::new(out), open)
    }

    /// As [`epilogue_open`](EpilogueBackend::epilogue_open).
    fn epilogue_bias_open(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        assert!(!x.is_tracked() && !bias.is_tracked(), "{SECOND}");
        let (out, open) = B::epilogue_bias_open(x.into_primitive(), bias.into_primitive(), plan);
        (FloatTensor::<Self>::new(out), open)
    }

    /// Gets here only if someone asks for the gradient of a gradient.
    fn epilogue_grad(
        grad: FloatTensor<Self>,
        kept: EpilogueKept<Self>,
        plan: EpiloguePlan,
        bias: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (tracked, kept) = match kept {
            EpilogueKept::Nothing => (false, EpilogueKept::Nothing),
            EpilogueKept::Open(open) => (false, EpilogueKept::Open(open)),
            EpilogueKept::Out(out) => (out.is_tracked(), EpilogueKept::Out(out.into_primitive())),
        };
        assert!(!tracked && !grad.is_tracked(), "{SECOND}");
        let (dx, db) = B::epilogue_grad(grad.into_primitive(), kept, plan, bias);
        (FloatTensor::<Self>::new(dx), FloatTensor::<Self>::new(db))
    }
}
