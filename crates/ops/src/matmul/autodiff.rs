//! The gradients of products with a matrix of weights.

use burn::backend::Autodiff;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::{MatmulBackend, Transpose, by_backend};

/// `x` and `w`, each if the other one is tracked.
type Kept<B> = (Option<FloatTensor<B>>, Option<FloatTensor<B>>);

/// `x · w`
#[derive(Debug)]
struct Product;

/// `sum + x · w`
#[derive(Debug)]
struct Onto;

/// Registers the gradients of `x` and `w`.
fn operands<B: MatmulBackend>((x, w): Kept<B>, grad: FloatTensor<B>, [x_id, w_id]: [Option<NodeId>; 2], grads: &mut Gradients) {
    // `x` is given up before the gradient of the same size is made: for hidden rows this is the moment at
    // which a training step holds most.
    if let (Some(id), Some(x)) = (w_id, x) {
        grads.register::<B>(id, B::matmul_transposed(x, grad.clone(), Transpose { left: true, right: false }));
    }
    if let (Some(id), Some(w)) = (x_id, w) {
        grads.register::<B>(id, B::matmul_transposed(grad, w, Transpose { left: false, right: true }));
    }
}

impl<B: MatmulBackend> Backward<B, 2> for Product {
    type State = Kept<B>;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ids = ops.parents.map(|node| node.map(|n| n.id));
        let grad = grads.consume::<B>(&ops.node);
        operands::<B>(ops.state, grad, ids, grads);
    }
}

impl<B: MatmulBackend> Backward<B, 3> for Onto {
    type State = Kept<B>;

    fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x, w, sum] = ops.parents.map(|node| node.map(|n| n.id));
        let grad = grads.consume::<B>(&ops.node);
        if let Some(id) = sum {
            grads.register::<B>(id, grad.clone());
        }
        operands::<B>(ops.state, grad, [x, w], grads);
    }
}

impl<B: MatmulBackend, C: CheckpointStrategy> MatmulBackend for Autodiff<B, C> {
    fn matmul_transposed(l: FloatTensor<Self>, r: FloatTensor<Self>, transpose: Transpose) -> FloatTensor<Self> {
        // Transposed operands come from the backward of a gradient: Burn's own operations track them.
        if transpose.left || transpose.right {
            return by_backend::<Self>(l, r, transpose);
        }
        let kept = (r.is_tracked(), l.is_tracked());
        let ((l, l_node), (r, r_node)) = (l.into_parts(), r.into_parts());
        match Product.prepare::<C>([l_node, r_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let kept = (kept.0.then(|| l.clone()), kept.1.then(|| r.clone()));
                prep.finish(kept, B::matmul_transposed(l, r, transpose))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::matmul_transposed(l, r, transpose)),
        }
    }

    fn matmul_onto(x: FloatTensor<Self>, w: FloatTensor<Self>, sum: FloatTensor<Self>) -> FloatTensor<Self> {
        let kept = (w.is_tracked(), x.is_tracked());
        let ((x, x_node), (w, w_node), (sum, sum_node)) = (x.into_parts(), w.into_parts(), sum.into_parts());
        match Onto.prepare::<C>([x_node, w_node, sum_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let kept = (kept.0.then(|| x.clone()), kept.1.then(|| w.clone()));
                prep.finish(kept, B::matmul_onto(x, w, sum))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::matmul_onto(x, w, sum)),
        }
    }
}
