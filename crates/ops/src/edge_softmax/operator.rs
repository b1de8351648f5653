//! Implements `Operator` for edge and segment softmax and their gradient.

use burn::backend::tensor::FloatTensor;

use super::{SoftmaxPlan, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors,
};

const NAME: &str = "segment_softmax, edge_softmax";

/// `y` from the logits.
impl Operator for SoftmaxPlan {
    const NAME: &'static str = NAME;

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [x] = inputs.take();
        Tensors::one(reference::forward::<B>(x, self))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, _tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![false], result: true }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        saved: Saved<B>,
        _wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let [y] = saved.results.take();
        vec![Some(B::run(vec![grad, y].into(), SoftmaxGrad(self.clone())).read().float())]
    }
}

/// The gradient of the logits, from that of `y` and `y`.
#[derive(Clone, Debug)]
pub(crate) struct SoftmaxGrad(pub(crate) SoftmaxPlan);

impl Operator for SoftmaxGrad {
    const NAME: &'static str = NAME;

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.0.shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, y] = inputs.take();
        Tensors::one(reference::gradient::<B>(y, grad, &self.0))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(&self.0, inputs)
    }
}
