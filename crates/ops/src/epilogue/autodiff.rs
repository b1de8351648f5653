//! The hand-written gradient of an epilogue.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::{EpilogueBackend, EpilogueKept};
use super::plan::EpiloguePlan;

fn kept<B: EpilogueBackend>(out: Option<FloatTensor<B>>) -> EpilogueKept<B> {
    out.map_or(EpilogueKept::Nothing, EpilogueKept::Output)
}

#[derive(Debug)]
struct Plain;

impl<B: EpilogueBackend> Backward<B, 1> for Plain {
    type State = (EpiloguePlan, Option<FloatTensor<B>>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let (plan, out) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::epilogue_grad(grad, kept::<B>(out), plan, false).0);
        }
    }
}

#[derive(Debug)]
struct Biased;

impl<B: EpilogueBackend> Backward<B, 2> for Biased {
    type State = (EpiloguePlan, Option<FloatTensor<B>>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x, bias] = ops.parents;
        let (plan, out) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let (dx, db) = B::epilogue_grad(grad, kept::<B>(out), plan, bias.is_some());
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
                let out = B::epilogue(x, plan.clone());
                let kept = plan.keeps_output().then(|| out.clone());
                prep.finish((plan, kept), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::epilogue(x, plan)),
        }
    }

    fn epilogue_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>, plan: EpiloguePlan) -> FloatTensor<Self> {
        let ((x, x_node), (bias, bias_node)) = (x.into_parts(), bias.into_parts());
        match Biased.prepare::<C>([x_node, bias_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let out = B::epilogue_bias(x, bias, plan.clone());
                let kept = plan.keeps_output().then(|| out.clone());
                prep.finish((plan, kept), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::epilogue_bias(x, bias, plan)),
        }
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
            EpilogueKept::Output(out) => (out.is_tracked(), EpilogueKept::Output(out.into_primitive())),
        };
        assert!(
            !tracked && !grad.is_tracked(),
            "bias_activation: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
        );
        let (dx, db) = B::epilogue_grad(grad.into_primitive(), kept, plan, bias);
        (FloatTensor::<Self>::new(dx), FloatTensor::<Self>::new(db))
    }
}
