//! Hand-written gradients of GSDDMM. What is kept is only what a tracked input needs.
//!
//! A gradient that is a GSpMM runs as one, so that there is one set of kernels for it.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};

use super::backend::GsddmmBackend;
use super::plan::{Gather, opposite};
use super::{GsddmmPlan, SddmmOp};
use crate::backend::Kept;
use crate::gspmm::Side;

/// Gradient of one side; `lhs` and `rhs` are there where [`SddmmOp::gradient_reads`] asks for them.
fn gradient<B: GsddmmBackend>(
    grad: FloatTensor<B>,
    lhs: Option<&FloatTensor<B>>,
    rhs: Option<&FloatTensor<B>>,
    plan: &GsddmmPlan,
    side: Side,
) -> FloatTensor<B> {
    let (need_lhs, need_rhs) = plan.op().gradient_reads(side);
    let (lhs, rhs) = (lhs.filter(|_| need_lhs).cloned(), rhs.filter(|_| need_rhs).cloned());
    let other = if opposite(side) == Side::Lhs { lhs.clone() } else { rhs.clone() };
    match (plan.as_gspmm(side), other) {
        (Some(Gather::Plain(plan)), _) => return B::gspmm_copy(grad, plan),
        (Some(Gather::Negated(plan)), _) => {
            let sum = B::gspmm_copy(grad, plan);
            // Not a change of sign: the gradient of a node without edges is 0, not -0.
            return B::float_sub(B::float_zeros(sum.shape(), &sum.device(), sum.dtype().into()), sum);
        }
        (Some(Gather::Weighted(plan)), Some(other)) => return B::gspmm_binary(other, grad, plan),
        _ => {}
    }
    let kept = match (lhs, rhs) {
        (None, None) => Kept::Nothing,
        (Some(l), None) => Kept::Lhs(l),
        (None, Some(r)) => Kept::Rhs(r),
        (Some(l), Some(r)) => Kept::Both(l, r),
    };
    B::gsddmm_grad(grad, kept, plan.clone(), side)
}

#[derive(Debug)]
struct CopyBackward;

impl<B: GsddmmBackend> Backward<B, 1> for CopyBackward {
    type State = GsddmmPlan;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let plan = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let side = if plan.op() == SddmmOp::CopyLhs { Side::Lhs } else { Side::Rhs };
        if let Some(node) = parent {
            grads.register::<B>(node.id, gradient::<B>(grad, None, None, &plan, side));
        }
    }
}

#[derive(Debug)]
struct BinaryBackward;

#[derive(Clone, Debug)]
struct BinaryState {
    plan: GsddmmPlan,
    lhs: Option<NodeId>,
    rhs: Option<NodeId>,
}

impl<B: GsddmmBackend> Backward<B, 2> for BinaryBackward {
    type State = BinaryState;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let BinaryState { plan, lhs, rhs } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let lhs: Option<FloatTensor<B>> = lhs.map(|id| checkpointer.retrieve_node_output(id));
        let rhs: Option<FloatTensor<B>> = rhs.map(|id| checkpointer.retrieve_node_output(id));
        for (node, side) in ops.parents.into_iter().zip([Side::Lhs, Side::Rhs]) {
            if let Some(node) = node {
                grads.register::<B>(node.id, gradient::<B>(grad.clone(), lhs.as_ref(), rhs.as_ref(), &plan, side));
            }
        }
    }
}

impl<B: GsddmmBackend, C: CheckpointStrategy> GsddmmBackend for Autodiff<B, C> {
    fn gsddmm_copy(x: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        match CopyBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let out = B::gsddmm_copy(x, plan.clone());
                prep.finish(plan, out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::gsddmm_copy(x, plan)),
        }
    }

    fn gsddmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GsddmmPlan) -> FloatTensor<Self> {
        let reads = |tracked, side| if tracked { plan.op().gradient_reads(side) } else { (false, false) };
        let (a, b) = (reads(lhs.is_tracked(), Side::Lhs), reads(rhs.is_tracked(), Side::Rhs));
        let (keep_lhs, keep_rhs) = (a.0 || b.0, a.1 || b.1);
        match BinaryBackward.prepare::<C>([lhs.node(), rhs.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let kept_lhs = keep_lhs.then(|| prep.checkpoint(&lhs));
                let kept_rhs = keep_rhs.then(|| prep.checkpoint(&rhs));
                let out = B::gsddmm_binary(lhs.into_primitive(), rhs.into_primitive(), plan.clone());
                prep.finish(BinaryState { plan, lhs: kept_lhs, rhs: kept_rhs }, out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::gsddmm_binary(lhs.into_primitive(), rhs.into_primitive(), plan)),
        }
    }

    fn gsddmm_grad(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GsddmmPlan, side: Side) -> FloatTensor<Self> {
        // Gradients are computed on the backend below. They get here only if someone asks for the gradient
        // of a gradient.
        let (tracked, kept) = match kept {
            Kept::Nothing => (false, Kept::Nothing),
            Kept::Lhs(l) => (l.is_tracked(), Kept::Lhs(l.into_primitive())),
            Kept::Rhs(r) => (r.is_tracked(), Kept::Rhs(r.into_primitive())),
            Kept::Both(l, r) => (l.is_tracked() || r.is_tracked(), Kept::Both(l.into_primitive(), r.into_primitive())),
        };
        assert!(
            !tracked && !grad.is_tracked(),
            "gsddmm: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
        );
        FloatTensor::<Self>::new(B::gsddmm_grad(grad.into_primitive(), kept, plan, side))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use std::sync::Arc;

    use burn::backend::Flex;
    use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
    use burn::backend::flex::FlexTensor;
    use burn::tensor::TensorData;
    use burn_gnn_graph::Relation;

    use super::*;
    use crate::gsddmm::Target;

    type Ad = Autodiff<Flex, NoCheckpointing>;

    fn leaf(rows: usize, tracked: bool) -> FloatTensor<Ad> {
        let data: Vec<f32> = (0..2 * rows).map(|i| i as f32 + 1.0).collect();
        let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(data, [rows, 2])));
        if tracked { x.require_grad() } else { x }
    }

    fn plan(op: SddmmOp) -> GsddmmPlan {
        let relation = Relation::from_coo(3, 2, vec![0, 1, 2, 2], vec![0, 0, 1, 1]).unwrap();
        GsddmmPlan::new(&relation, op, [Target::Src, Target::Dst], [&[2], &[2]]).unwrap()
    }

    /// After the call the operands are dropped; whose buffers are still held is what was kept.
    #[test]
    fn keeps_only_what_a_tracked_input_needs() {
        use SddmmOp::{Add, Div, Dot, Mul, Sub};
        for (op, tracked, kept) in [
            (Add, (true, true), (false, false)),
            (Sub, (true, true), (false, false)),
            (Mul, (true, true), (true, true)),
            (Mul, (true, false), (false, true)),
            (Mul, (false, true), (true, false)),
            (Mul, (false, false), (false, false)),
            (Dot, (true, true), (true, true)),
            (Dot, (true, false), (false, true)),
            (Dot, (false, true), (true, false)),
            (Div, (true, true), (true, true)),
            (Div, (true, false), (false, true)),
            (Div, (false, true), (true, true)),
            (Div, (false, false), (false, false)),
        ] {
            let (lhs, rhs) = (leaf(3, tracked.0), leaf(2, tracked.1));
            let (a, b) = (lhs.primitive().data_arc(), rhs.primitive().data_arc());
            let out = Ad::gsddmm_binary(lhs, rhs, plan(op));
            let held = (Arc::strong_count(&a) > 1, Arc::strong_count(&b) > 1);
            assert_eq!(held, kept, "{op:?}, tracked {tracked:?}");
            drop(out);
        }
    }

    #[test]
    fn copies_keep_nothing() {
        let x = leaf(3, true);
        let data = x.primitive().data_arc();
        let out = Ad::gsddmm_copy(x, plan(SddmmOp::CopyLhs));
        assert!(out.is_tracked());
        assert_eq!(Arc::strong_count(&data), 1);
    }

    #[test]
    fn an_untracked_parent_gets_no_gradient() {
        for tracked in [(true, true), (true, false), (false, true)] {
            let (lhs, rhs) = (leaf(3, tracked.0), leaf(2, tracked.1));
            let grads = Ad::gsddmm_binary(lhs.clone(), rhs.clone(), plan(SddmmOp::Div)).backward();
            assert_eq!((lhs.grad(&grads).is_some(), rhs.grad(&grads).is_some()), tracked);
        }
    }

    #[test]
    #[should_panic(expected = "gsddmm: the gradient of a gradient is not implemented")]
    fn second_order_is_refused() {
        let _ = Ad::gsddmm_grad(leaf(4, true), Kept::Nothing, plan(SddmmOp::Add), Side::Lhs);
    }
}
