//! Implements `Operator` for typed products and their gradients.

use burn::backend::tensor::FloatTensor;

use super::{TypedPlan, cpu, reference};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors,
};

/// Every row of `a` times its matrix of `b`.
impl Operator for TypedPlan {
    const NAME: &'static str = "segment_mm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [a, b] = inputs.take();
        Tensors::one(reference::multiply::<B>(a, b, self, false))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::multiply(self, inputs, false)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        SavedForBackward { inputs: vec![tracked[1], tracked[0]], result: false }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        // A tracked operand's gradient reads the other one, which was kept for it.
        let mut kept = saved.inputs.into_iter();
        let (a, b) = (kept.next().flatten(), kept.next().flatten());
        let run = |other: FloatTensor<B>, op: TypedGrad| {
            B::run(vec![grad.clone(), other].into(), op).read().float()
        };
        vec![
            b.filter(|_| wants[0]).map(|b| run(b, TypedGrad::Rows(self.clone()))),
            a.filter(|_| wants[1]).map(|a| run(a, TypedGrad::Matrices(self.clone()))),
        ]
    }
}

/// A gradient, from that of the result and the other operand.
#[derive(Clone, Debug)]
pub(crate) enum TypedGrad {
    /// Of the rows, from the matrices.
    Rows(TypedPlan),
    /// Of the matrices, from the rows.
    Matrices(TypedPlan),
}

impl Operator for TypedGrad {
    const NAME: &'static str = "segment_mm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        let shape = match self {
            Self::Rows(plan) => plan.a_shape(),
            Self::Matrices(plan) => plan.b_shape(),
        };
        Specs::one(shape, inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let [grad, other] = inputs.take();
        Tensors::one(match self {
            Self::Rows(plan) => reference::multiply::<B>(grad, other, plan, true),
            Self::Matrices(plan) => reference::grad_b::<B>(grad, other, plan),
        })
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        match self {
            Self::Rows(plan) => cpu::multiply(plan, inputs, true),
            Self::Matrices(plan) => cpu::gradient_of_matrices(plan, inputs),
        }
    }
}
