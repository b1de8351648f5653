//! Implements `Operator` for edge and segment softmax and their gradient.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::Kernels;
use burn_gnn_plan::SoftmaxPlan;

use crate::edge_softmax::reference;
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors};

const NAME: &str = "segment_softmax, edge_softmax";

/// Softmax. Input: the logits.
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
        let [x] = inputs.take();
        Tensors::one(by_dtype!(x.dtype(), T => {
            B::from_floats(T::softmax(self, &B::floats(&x)), self.shape())
        }))
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [x] = inputs.take();
        Tensors::one(burn_gnn_cube::edge_softmax(self, x))
    }
    fn gradient(&self, _tracked: &[bool]) -> Gradient {
        Gradient::reading([false], true)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        call.run(SoftmaxGrad(self.clone()))
    }
}

/// Gradient of the logits. Inputs: the gradient of the probabilities, and the probabilities.
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
        let ([grad, y], plan) = (inputs.take(), &self.0);
        Tensors::one(by_dtype!(grad.dtype(), T => {
            B::from_floats(
                T::softmax_gradient(plan, &B::floats(&y), &B::floats(&grad)),
                plan.shape(),
            )
        }))
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let [grad, y] = inputs.take();
        Tensors::one(burn_gnn_cube::edge_softmax_grad(&self.0, y, grad))
    }
}
