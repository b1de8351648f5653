//! The backend extension of Adam.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, backend_extension};

use super::plan::AdamStep;
use super::reference;

/// A step of Adam. The default body is plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait AdamBackend: Backend {
    /// Parameter and moments after the step.
    #[fusion(default)]
    fn adam_step(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        reference::step::<Self>(param, grad, moment_1, moment_2, &step.factors())
    }
}

impl<B: AdamBackend, C: CheckpointStrategy> AdamBackend for Autodiff<B, C> {
    fn adam_step(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        assert!(
            ![&param, &grad, &moment_1, &moment_2].iter().any(|x| x.is_tracked()),
            "adam_step: an update is not differentiable; pass tensors that are not tracked (`inner` or `detach`)"
        );
        let (p, m, v) =
            B::adam_step(param.into_primitive(), grad.into_primitive(), moment_1.into_primitive(), moment_2.into_primitive(), step);
        (FloatTensor::<Self>::new(p), FloatTensor::<Self>::new(m), FloatTensor::<Self>::new(v))
    }
}
