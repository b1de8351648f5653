//! The gradient of a tensor of which the first rows were taken besides.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};
use burn::tensor::Shape;

use super::backend::{FirstRows, FirstRowsBackend, FirstRowsPlan};

#[derive(Debug)]
struct Whole;

impl<B: FirstRowsBackend> Backward<B, 1> for Whole {
    /// The plan and the shape of the whole.
    type State = (FirstRowsPlan, Shape);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let due = grads.consume::<B>(&ops.node);
        let (plan, shape) = ops.state;
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::first_rows_join(due, plan, shape));
        }
    }
}

#[derive(Debug)]
struct Taken;

impl<B: FirstRowsBackend> Backward<B, 1> for Taken {
    type State = (FirstRowsPlan, FirstRows);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let grad = grads.consume::<B>(&ops.node);
        let (plan, which) = ops.state;
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::first_rows_put(grad, plan, which));
        }
    }
}

impl<B: FirstRowsBackend, C: CheckpointStrategy> FirstRowsBackend for Autodiff<B, C> {
    fn first_rows_of(x: FloatTensor<Self>, plan: FirstRowsPlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let state = (plan.clone(), x.shape());
        let out = B::first_rows_of(x, plan);
        match Whole.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
    fn first_rows_take(whole: FloatTensor<Self>, plan: FirstRowsPlan, which: FirstRows) -> FloatTensor<Self> {
        let (whole, node) = whole.into_parts();
        let out = B::first_rows_take(whole, plan.clone(), which);
        match Taken.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((plan, which), out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
}
