//! The hand-written gradient of edge softmax, which keeps the result and nothing else.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::EdgeSoftmaxPlan;
use super::backend::EdgeSoftmaxBackend;

#[derive(Debug)]
struct SoftmaxBackward;

impl<B: EdgeSoftmaxBackend> Backward<B, 1> for SoftmaxBackward {
    type State = (EdgeSoftmaxPlan, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let (plan, y) = ops.state;
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::edge_softmax_grad(y, grad, plan));
        }
    }
}

impl<B: EdgeSoftmaxBackend, C: CheckpointStrategy> EdgeSoftmaxBackend for Autodiff<B, C> {
    fn edge_softmax(x: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        match SoftmaxBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                let y = B::edge_softmax(x, plan.clone());
                prep.finish((plan, y.clone()), y)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::edge_softmax(x, plan)),
        }
    }

    fn edge_softmax_grad(y: FloatTensor<Self>, grad: FloatTensor<Self>, plan: EdgeSoftmaxPlan) -> FloatTensor<Self> {
        // Gradients are computed on the backend below. They get here only if someone asks for the gradient
        // of a gradient.
        assert!(
            !y.is_tracked() && !grad.is_tracked(),
            "edge_softmax: the gradient of a gradient is not implemented; detach the inputs of the first gradient"
        );
        FloatTensor::<Self>::new(B::edge_softmax_grad(y.into_primitive(), grad.into_primitive(), plan))
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
    use crate::edge_softmax::NormBy;

    type Ad = Autodiff<Flex, NoCheckpointing>;

    fn leaf(tracked: bool) -> FloatTensor<Ad> {
        let x = FloatTensor::<Ad>::new(FlexTensor::from_data(TensorData::new(vec![1.0f32, 2.0, 3.0], [3])));
        if tracked { x.require_grad() } else { x }
    }

    fn plan() -> EdgeSoftmaxPlan {
        let relation = Relation::from_coo(3, 2, vec![0, 1, 2], vec![0, 0, 1]).unwrap();
        EdgeSoftmaxPlan::new(&relation, NormBy::Dst, &[]).unwrap()
    }

    #[test]
    fn keeps_its_result_only() {
        for tracked in [false, true] {
            let x = leaf(tracked);
            let data = x.primitive().data_arc();
            let y = Ad::edge_softmax(x, plan());
            assert_eq!(Arc::strong_count(&data), 1, "logits are not kept");
            // The tensor's own, the one just asked for, and the one that is kept.
            assert_eq!(Arc::strong_count(&y.primitive().data_arc()), if tracked { 3 } else { 2 });
        }
    }

    #[test]
    #[should_panic(expected = "edge_softmax: the gradient of a gradient is not implemented")]
    fn second_order_is_refused() {
        let _ = Ad::edge_softmax_grad(leaf(true), leaf(false), plan());
    }
}
