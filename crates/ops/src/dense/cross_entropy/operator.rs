//! Implements `Operator` for cross entropy and its gradient.

use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;

use super::{CrossEntropyPlan, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors,
};

/// The loss `[1]` of the logits, and for each chosen row its largest logit and 1 / Σ exp(logit - largest), `[rows, 2]`.
impl Operator for CrossEntropyPlan {
    const NAME: &'static str = "cross_entropy_rows";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let dtype = inputs[0].dtype;
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        Specs::floats([Spec::new([1], dtype), Spec::new([self.rows().len(), 2], wide)])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [logits] = inputs.take();
        let (loss, stats) = reference::forward::<B>(logits, self);
        vec![loss, stats].into()
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, _tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![true], result: false }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        mut saved: Saved<B>,
        _wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let mut floats = vec![grad];
        floats.append(&mut saved.results.floats);
        floats.append(&mut saved.kept_inputs());
        vec![Some(B::run(floats.into(), CrossEntropyGrad(self.clone())).read().float())]
    }
}

/// The gradient of the logits, from that of the loss, the statistics and the logits.
#[derive(Clone, Debug)]
pub(crate) struct CrossEntropyGrad(pub(crate) CrossEntropyPlan);

impl Operator for CrossEntropyGrad {
    const NAME: &'static str = "cross_entropy_rows";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::floats([inputs[2].clone()])
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, stats, logits] = inputs.take();
        Tensors::one(reference::gradient::<B>(grad, stats, logits, &self.0))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient(&self.0, inputs)
    }
}
