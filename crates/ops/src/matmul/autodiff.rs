//! The gradient of a product with a matrix of weights.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::backend::MatmulBackend;

#[derive(Debug)]
struct Product;

impl<B: MatmulBackend> Backward<B, 2> for Product {
    /// Each operand if the other one is tracked.
    type State = (Option<FloatTensor<B>>, Option<FloatTensor<B>>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [x_node, w_node] = ops.parents;
        let (x, w) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        // `x` is given up before the gradient of the same size is made: for hidden rows this is the moment at
        // which a training step holds most.
        if let (Some(node), Some(x)) = (w_node, x) {
            grads.register::<B>(node.id, B::float_matmul(B::float_transpose(x), grad.clone()));
        }
        if let (Some(node), Some(w)) = (x_node, w) {
            grads.register::<B>(node.id, B::float_matmul(grad, B::float_transpose(w)));
        }
    }
}

impl<B: MatmulBackend, C: CheckpointStrategy> MatmulBackend for Autodiff<B, C> {
    fn matmul_weights(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let (x_tracked, w_tracked) = (x.is_tracked(), w.is_tracked());
        let ((x, x_node), (w, w_node)) = (x.into_parts(), w.into_parts());
        match Product.prepare::<C>([x_node, w_node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let kept = (w_tracked.then(|| x.clone()), x_tracked.then(|| w.clone()));
                prep.finish(kept, B::matmul_weights(x, w))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::matmul_weights(x, w)),
        }
    }
}
