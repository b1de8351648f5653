//! Implements `Operator` for cross entropy and its gradient.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn::tensor::DType;
use burn_gnn_cpu::{Acc, Elem, Kernels};
use burn_gnn_plan::CrossEntropyPlan;

use crate::dense::cross_entropy::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors};

/// Cross entropy. Input: the logits. Results: the loss, `[1]`, and statistics of each chosen row, `[rows, 2]`: its largest
/// logit and 1 / Σ exp(logit - largest).
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
        let [logits] = inputs.take();
        by_dtype!(logits.dtype(), T => {
            let (loss, stats) = T::cross_entropy(&B::floats::<T>(&logits), self);
            vec![
                B::from_floats(vec![loss], [1].into()),
                B::from_floats(stats, [self.rows().len(), 2].into()),
            ]
            .into()
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [logits] = inputs.take();
        let (loss, stats) = burn_gnn_cube::cross_entropy(self, logits);
        vec![loss, stats].into()
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([true], false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(CrossEntropyGrad(self.clone()))
    }
}

/// Gradient of the logits. Inputs: the gradient of the loss, the statistics, and the logits.
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
        let ([grad, stats, logits], plan) = (inputs.take(), &self.0);
        by_dtype!(logits.dtype(), T => {
            // The loss has one entry.
            let grad =
                B::floats::<T>(&grad).first().copied().unwrap_or(T::of(<T as Elem>::Acc::ZERO));
            let stats = B::floats::<<T as Elem>::Acc>(&stats);
            Tensors::one(B::from_floats(
                T::cross_entropy_gradient(grad, &stats, &B::floats::<T>(&logits), plan),
                plan.shape().into(),
            ))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [grad, stats, logits] = inputs.take();
        Tensors::one(burn_gnn_cube::cross_entropy_grad(&self.0, grad, stats, logits))
    }
}
