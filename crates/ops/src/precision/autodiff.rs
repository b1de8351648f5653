//! The gradient of a cast is a cast back.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};
use burn::tensor::FloatDType;

use super::PrecisionBackend;

#[derive(Debug)]
struct Cast;

impl<B: PrecisionBackend> Backward<B, 1> for Cast {
    /// Type of the input.
    type State = FloatDType;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let [parent] = ops.parents;
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::precision_cast(grad, ops.state));
        }
    }
}

impl<B: PrecisionBackend, C: CheckpointStrategy> PrecisionBackend for Autodiff<B, C> {
    fn precision_cast(x: FloatTensor<Self>, dtype: FloatDType) -> FloatTensor<Self> {
        let (x, node) = x.into_parts();
        let own = FloatDType::from(x.dtype());
        let out = B::precision_cast(x, dtype);
        match Cast.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(own, out),
            OpsKind::UnTracked(prep) => prep.finish(out),
        }
    }
}
