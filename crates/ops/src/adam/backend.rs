//! The backend extension of Adam.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{FloatTensor, IndexingUpdateOp};
use burn::backend::{Autodiff, Backend, TensorMetadata, backend_extension};

use super::plan::AdamStep;
use super::reference;
use crate::primitives::index;

/// A step of Adam. The default body is plain Burn primitives.
#[backend_extension(Flex: cfg(feature = "flex"), NdArray: cfg(feature = "ndarray"), Cube: cfg(feature = "cube"), Autodiff, Fusion: cfg(feature = "fusion"))]
pub trait AdamBackend: Backend {
    /// Parameter and moments after the step.
    #[fusion(meta = |param, _grad, _moment_1, _moment_2, _step| (param.clone(), param.clone(), param.clone()))]
    fn adam_step(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        reference::step::<Self>(param, grad, moment_1, moment_2, &step.factors())
    }

    /// The same of rows `ids`, each named once, of a table and its moments; `grad` has a row for each of them.
    #[fusion(meta = |param, _grad, _moment_1, _moment_2, _ids, _step| (param.clone(), param.clone(), param.clone()))]
    fn adam_rows(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        ids: Arc<[u32]>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let index = index::<Self>(&ids, &param.device());
        let at = |x: &FloatTensor<Self>| Self::float_select(x.clone(), 0, index.clone());
        let (p, m, v) = Self::adam_step(at(&param), grad, at(&moment_1), at(&moment_2), step);
        let put = |x, rows| Self::float_select_assign(x, 0, index.clone(), rows, IndexingUpdateOp::Assign);
        (put(param, p), put(moment_1, m), put(moment_2, v))
    }
}

/// Refuses what autodiff would have to follow.
fn refuse_tracked<B: AdamBackend, C: CheckpointStrategy>(op: &str, tensors: [&FloatTensor<Autodiff<B, C>>; 4]) {
    assert!(
        !tensors.iter().any(|x| x.is_tracked()),
        "{op}: an update is not differentiable; pass tensors that are not tracked (`inner` or `detach`)"
    );
}

impl<B: AdamBackend, C: CheckpointStrategy> AdamBackend for Autodiff<B, C> {
    fn adam_step(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        refuse_tracked::<B, C>("adam_step", [&param, &grad, &moment_1, &moment_2]);
        let (p, m, v) =
            B::adam_step(param.into_primitive(), grad.into_primitive(), moment_1.into_primitive(), moment_2.into_primitive(), step);
        (FloatTensor::<Self>::new(p), FloatTensor::<Self>::new(m), FloatTensor::<Self>::new(v))
    }
    fn adam_rows(
        param: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        moment_1: FloatTensor<Self>,
        moment_2: FloatTensor<Self>,
        ids: Arc<[u32]>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        refuse_tracked::<B, C>("adam_rows", [&param, &grad, &moment_1, &moment_2]);
        let [param, grad, m, v] = [param, grad, moment_1, moment_2].map(|x| x.into_primitive());
        let (p, m, v) = B::adam_rows(param, grad, m, v, ids, step);
        (FloatTensor::<Self>::new(p), FloatTensor::<Self>::new(m), FloatTensor::<Self>::new(v))
    }
}
