//! Hand-written gradients. What is kept for backward is only what a tracked input needs.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};

use crate::backend::{GnnBackend, Kept};
use crate::dropout::DropoutPlan;
use crate::gspmm::{BinaryOp, GspmmPlan, Side};

/// Which operands backward will read, given which of them are tracked.
fn keeps(op: BinaryOp, lhs_tracked: bool, rhs_tracked: bool) -> (bool, bool) {
    let of = |tracked, side| if tracked { op.gradient_reads(side) } else { (false, false) };
    let (a, b) = (of(lhs_tracked, Side::Lhs), of(rhs_tracked, Side::Rhs));
    (a.0 || b.0, a.1 || b.1)
}

fn gradient<B: GnnBackend>(grad: FloatTensor<B>, arg: Option<IntTensor<B>>, kept: Kept<B>, plan: GspmmPlan, side: Side) -> FloatTensor<B> {
    match arg {
        Some(arg) => B::gspmm_grad_arg(grad, arg, kept, plan, side),
        None => B::gspmm_grad(grad, kept, plan, side),
    }
}

#[derive(Debug)]
struct CopyBackward;

impl<B: GnnBackend> Backward<B, 1> for CopyBackward {
    type State = (GspmmPlan, Option<IntTensor<B>>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let (plan, arg) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let side = if plan.op() == BinaryOp::CopyLhs { Side::Lhs } else { Side::Rhs };
        if let Some(node) = parent {
            grads.register::<B>(node.id, gradient::<B>(grad, arg, Kept::Nothing, plan, side));
        }
    }
}

#[derive(Debug)]
struct BinaryBackward;

#[derive(Clone, Debug)]
struct BinaryState<I> {
    plan: GspmmPlan,
    arg: Option<I>,
    lhs: Option<NodeId>,
    rhs: Option<NodeId>,
}

impl<B: GnnBackend> Backward<B, 2> for BinaryBackward {
    type State = BinaryState<IntTensor<B>>;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let BinaryState { plan, arg, lhs, rhs } = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        let lhs: Option<FloatTensor<B>> = lhs.map(|id| checkpointer.retrieve_node_output(id));
        let rhs: Option<FloatTensor<B>> = rhs.map(|id| checkpointer.retrieve_node_output(id));
        let kept = Kept::<B>::new(lhs, rhs);
        let parents = match (ops.parents, arg.is_none()) {
            ([Some(l), Some(r)], true) => {
                let (d_lhs, d_rhs) = B::gspmm_grads(grad, kept, plan);
                grads.register::<B>(l.id, d_lhs);
                return grads.register::<B>(r.id, d_rhs);
            }
            (parents, _) => parents,
        };
        for (node, side) in parents.into_iter().zip([Side::Lhs, Side::Rhs]) {
            if let Some(node) = node {
                let kept = kept.clone().for_side(plan.op(), side);
                grads.register::<B>(node.id, gradient::<B>(grad.clone(), arg.clone(), kept, plan.clone(), side));
            }
        }
    }
}

#[derive(Debug)]
struct DropoutBackward;

impl<B: GnnBackend> Backward<B, 1> for DropoutBackward {
    type State = DropoutPlan;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::dropout_rows(grad, ops.state));
        }
    }
}

type Out<B> = (FloatTensor<B>, Option<IntTensor<B>>);

fn some<F, I>((out, arg): (F, I)) -> (F, Option<I>) {
    (out, Some(arg))
}

/// Argmax indices are made for a gradient, or for a caller who asks for them.
fn copy<B: GnnBackend, C: CheckpointStrategy>(x: FloatTensor<Autodiff<B, C>>, plan: GspmmPlan, argmax: bool) -> Out<Autodiff<B, C>> {
    let run = |x, plan, argmax| if argmax { some(B::gspmm_copy_arg(x, plan)) } else { (B::gspmm_copy(x, plan), None) };
    let (x, node) = x.into_parts();
    match CopyBackward.prepare::<C>([node]).compute_bound().stateful() {
        OpsKind::Tracked(prep) => {
            let (out, arg) = run(x, plan.clone(), plan.reduce().selects());
            (prep.finish((plan, arg.clone()), out), arg)
        }
        OpsKind::UnTracked(prep) => {
            let (out, arg) = run(x, plan, argmax);
            (prep.finish(out), arg)
        }
    }
}

fn binary<B: GnnBackend, C: CheckpointStrategy>(
    lhs: FloatTensor<Autodiff<B, C>>,
    rhs: FloatTensor<Autodiff<B, C>>,
    plan: GspmmPlan,
    argmax: bool,
) -> Out<Autodiff<B, C>> {
    let run = |l, r, plan, argmax| if argmax { some(B::gspmm_binary_arg(l, r, plan)) } else { (B::gspmm_binary(l, r, plan), None) };
    let (keep_lhs, keep_rhs) = keeps(plan.op(), lhs.is_tracked(), rhs.is_tracked());
    match BinaryBackward.prepare::<C>([lhs.node(), rhs.node()]).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let kept_lhs = keep_lhs.then(|| prep.checkpoint(&lhs));
            let kept_rhs = keep_rhs.then(|| prep.checkpoint(&rhs));
            let (out, arg) = run(lhs.into_primitive(), rhs.into_primitive(), plan.clone(), plan.reduce().selects());
            let state = BinaryState { plan, arg: arg.clone(), lhs: kept_lhs, rhs: kept_rhs };
            (prep.finish(state, out), arg)
        }
        OpsKind::UnTracked(prep) => {
            let (out, arg) = run(lhs.into_primitive(), rhs.into_primitive(), plan, argmax);
            (prep.finish(out), arg)
        }
    }
}

/// Gradients are computed on the backend below autodiff. They get here only if someone asks for the
/// gradient of a gradient.
fn refuse_second_order<B: GnnBackend, C: CheckpointStrategy>(grad: &FloatTensor<Autodiff<B, C>>, kept: &Kept<Autodiff<B, C>>) {
    let tracked = grad.is_tracked()
        || match kept {
            Kept::Nothing => false,
            Kept::Lhs(x) | Kept::Rhs(x) => x.is_tracked(),
            Kept::Both(l, r) => l.is_tracked() || r.is_tracked(),
        };
    assert!(!tracked, "gspmm: the gradient of a gradient is not implemented; detach the inputs of the first gradient");
}

fn inner<B: GnnBackend, C: CheckpointStrategy>(kept: Kept<Autodiff<B, C>>) -> Kept<B> {
    match kept {
        Kept::Nothing => Kept::Nothing,
        Kept::Lhs(l) => Kept::Lhs(l.into_primitive()),
        Kept::Rhs(r) => Kept::Rhs(r.into_primitive()),
        Kept::Both(l, r) => Kept::Both(l.into_primitive(), r.into_primitive()),
    }
}

/// `copy` and `binary` return the argmax where it is asked for.
fn both<B: GnnBackend>((out, arg): Out<B>) -> (FloatTensor<B>, IntTensor<B>) {
    match arg {
        Some(arg) => (out, arg),
        None => unreachable!("the argmax was asked for"),
    }
}

impl<B: GnnBackend, C: CheckpointStrategy> GnnBackend for Autodiff<B, C> {
    fn gspmm_copy(x: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        copy::<B, C>(x, plan, false).0
    }

    fn gspmm_copy_arg(x: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        both::<Self>(copy::<B, C>(x, plan, true))
    }

    fn gspmm_binary(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> FloatTensor<Self> {
        binary::<B, C>(lhs, rhs, plan, false).0
    }

    fn gspmm_binary_arg(lhs: FloatTensor<Self>, rhs: FloatTensor<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, IntTensor<Self>) {
        both::<Self>(binary::<B, C>(lhs, rhs, plan, true))
    }

    fn gspmm_grad(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GspmmPlan, side: Side) -> FloatTensor<Self> {
        refuse_second_order::<B, C>(&grad, &kept);
        FloatTensor::<Self>::new(B::gspmm_grad(grad.into_primitive(), inner::<B, C>(kept), plan, side))
    }

    fn gspmm_grads(grad: FloatTensor<Self>, kept: Kept<Self>, plan: GspmmPlan) -> (FloatTensor<Self>, FloatTensor<Self>) {
        refuse_second_order::<B, C>(&grad, &kept);
        let (lhs, rhs) = B::gspmm_grads(grad.into_primitive(), inner::<B, C>(kept), plan);
        (FloatTensor::<Self>::new(lhs), FloatTensor::<Self>::new(rhs))
    }

    fn gspmm_grad_arg(grad: FloatTensor<Self>, arg: IntTensor<Self>, kept: Kept<Self>, plan: GspmmPlan, side: Side) -> FloatTensor<Self> {
        refuse_second_order::<B, C>(&grad, &kept);
        FloatTensor::<Self>::new(B::gspmm_grad_arg(grad.into_primitive(), arg, inner::<B, C>(kept), plan, side))
    }

    fn dropout_rows(x: FloatTensor<Self>, plan: DropoutPlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        match DropoutBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let out = B::dropout_rows(x, plan.clone());
                prep.finish(plan, out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::dropout_rows(x, plan)),
        }
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
    use crate::cpu::GRADIENTS;
    use crate::gspmm::Reduce;

    type Ad = Autodiff<Flex, NoCheckpointing>;

    fn leaf(rows: usize, tracked: bool) -> FloatTensor<Ad> {
        let data: Vec<f32> = (0..2 * rows).map(|i| i as f32 + 1.0).collect();
        let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(data, [rows, 2])));
        if tracked { x.require_grad() } else { x }
    }

    fn plan(op: BinaryOp, reduce: Reduce) -> GspmmPlan {
        let relation = Relation::from_coo(3, 2, vec![0, 1, 2, 2], vec![0, 0, 1, 1]).unwrap();
        GspmmPlan::new(&relation, op, reduce, &[2], &[2]).unwrap()
    }

    fn run(op: BinaryOp, reduce: Reduce, lhs: FloatTensor<Ad>, rhs: FloatTensor<Ad>) -> FloatTensor<Ad> {
        let plan = plan(op, reduce);
        Ad::gspmm_binary(lhs, rhs, plan)
    }

    /// After the call the operands are dropped; whose buffers are still held is what was kept.
    #[test]
    fn keeps_only_what_a_tracked_input_needs() {
        use BinaryOp::{Add, Div, Mul, Sub};
        for reduce in Reduce::ALL {
            for (op, tracked, kept) in [
                (Add, (true, true), (false, false)),
                (Sub, (true, true), (false, false)),
                (Mul, (true, true), (true, true)),
                (Mul, (true, false), (false, true)),
                (Mul, (false, true), (true, false)),
                (Mul, (false, false), (false, false)),
                (Div, (true, true), (true, true)),
                (Div, (true, false), (false, true)),
                (Div, (false, true), (true, true)),
                (Div, (false, false), (false, false)),
            ] {
                let (lhs, rhs) = (leaf(3, tracked.0), leaf(4, tracked.1));
                let (a, b) = (lhs.primitive().data_arc(), rhs.primitive().data_arc());
                let out = run(op, reduce, lhs, rhs);
                let held = (Arc::strong_count(&a) > 1, Arc::strong_count(&b) > 1);
                assert_eq!(held, kept, "{op:?} {reduce:?}, tracked {tracked:?}");
                drop(out);
            }
        }
    }

    #[test]
    fn copies_keep_nothing() {
        for reduce in Reduce::ALL {
            let x = leaf(3, true);
            let data = x.primitive().data_arc();
            let plan = plan(BinaryOp::CopyLhs, reduce);
            let out = Ad::gspmm_copy(x, plan);
            assert!(out.is_tracked());
            assert_eq!(Arc::strong_count(&data), 1, "{reduce:?}");
        }
    }

    #[test]
    fn an_untracked_parent_costs_no_gradient() {
        for reduce in Reduce::ALL {
            for (tracked, want) in [((true, true), 2), ((true, false), 1), ((false, true), 1)] {
                let (lhs, rhs) = (leaf(3, tracked.0), leaf(4, tracked.1));
                let before = GRADIENTS.get();
                let grads = run(BinaryOp::Div, reduce, lhs.clone(), rhs.clone()).backward();
                assert_eq!(GRADIENTS.get() - before, want, "{reduce:?}, tracked {tracked:?}");
                assert_eq!((lhs.grad(&grads).is_some(), rhs.grad(&grads).is_some()), tracked);
            }
        }
    }

    #[test]
    #[should_panic(expected = "the gradient of a gradient is not implemented")]
    fn second_order_is_refused() {
        let _ = Ad::gspmm_grad(leaf(2, true), Kept::Nothing, plan(BinaryOp::Add, Reduce::Sum), Side::Lhs);
    }

    #[test]
    fn untracked_gradients_pass_through() {
        let grad = Ad::gspmm_grad(leaf(2, false), Kept::Nothing, plan(BinaryOp::Add, Reduce::Sum), Side::Lhs);
        assert_eq!(grad.into_primitive().as_slice::<f32>().unwrap(), [1.0, 2.0, 1.0, 2.0, 6.0, 8.0]);
    }
}
