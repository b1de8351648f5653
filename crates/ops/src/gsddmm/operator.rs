//! Implements `Operator` for GSDDMM and its gradient; a gradient that is a GSpMM runs as one.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::{Gather, GsddmmPlan, SddmmOp, cpu, reference};
use crate::gspmm::{Side, gspmm_on};
use crate::operator::cpu::Host;
use crate::operator::{
    GnnBackend, Gradient, Operator, Saved, SavedForBackward, Spec, Specs, Tensors,
};

/// The sides that inputs are, in their order.
fn sides(plan: &GsddmmPlan) -> &'static [Side] {
    match plan.op() {
        SddmmOp::CopyLhs => &[Side::Lhs],
        SddmmOp::CopyRhs => &[Side::Rhs],
        _ => &[Side::Lhs, Side::Rhs],
    }
}

/// The row of `x` for every edge for a copy, of the operator on `lhs` and `rhs` otherwise.
impl Operator for GsddmmPlan {
    const NAME: &'static str = "gsddmm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.out_shape(), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let mut inputs = inputs.read();
        let lhs = inputs.float();
        Tensors::one(match sides(self) {
            [_] => reference::copy::<B>(lhs, self),
            _ => reference::binary::<B>(lhs, inputs.float(), self),
        })
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::forward(self, inputs)
    }
    fn gradient(&self) -> Gradient {
        Gradient::Backward
    }
    fn keeps(&self, tracked: &[bool]) -> SavedForBackward {
        let reads = sides(self)
            .iter()
            .zip(tracked)
            .filter(|(_, tracked)| **tracked)
            .map(|(&side, _)| self.op().gradient_reads(side));
        let (lhs, rhs) = reads.fold((false, false), |a, b| (a.0 || b.0, a.1 || b.1));
        SavedForBackward {
            inputs: sides(self)
                .iter()
                .map(|&side| if side == Side::Lhs { lhs } else { rhs })
                .collect(),
            result: false,
        }
    }
    fn backward<B: GnnBackend>(
        &self,
        grad: FloatTensor<B>,
        saved: Saved<B>,
        wants: &[bool],
    ) -> Vec<Option<FloatTensor<B>>> {
        let [lhs, rhs] = [0, 1].map(|i| saved.inputs.get(i).and_then(Option::as_ref));
        let of = |(&side, &wanted): (&Side, &bool)| {
            wanted.then(|| gradient::<B>(grad.clone(), lhs, rhs, self, side))
        };
        sides(self).iter().zip(wants).map(of).collect()
    }
}

/// Gradient of one side; `lhs` and `rhs` are there where [`SddmmOp::gradient_reads`] asks for them.
fn gradient<B: GnnBackend>(
    grad: FloatTensor<B>,
    lhs: Option<&FloatTensor<B>>,
    rhs: Option<&FloatTensor<B>>,
    plan: &GsddmmPlan,
    side: Side,
) -> FloatTensor<B> {
    let (needs_lhs, needs_rhs) = plan.op().gradient_reads(side);
    let (lhs, rhs) = (lhs.filter(|_| needs_lhs), rhs.filter(|_| needs_rhs));
    let other = if side.opposite() == Side::Lhs { lhs } else { rhs };
    match (plan.as_gspmm(side), other) {
        (Some(Gather::Plain(plan)), _) => return gspmm_on::<B>(plan, vec![grad]),
        (Some(Gather::Negated(plan)), _) => {
            let sum = gspmm_on::<B>(plan, vec![grad]);
            // Not a change of sign: the gradient of a node without edges is 0, not -0.
            return B::float_sub(
                B::float_zeros(sum.shape(), &sum.device(), sum.dtype().into()),
                sum,
            );
        }
        (Some(Gather::Weighted(plan)), Some(other)) => {
            return gspmm_on::<B>(plan, vec![other.clone(), grad]);
        }
        _ => {}
    }
    let floats: Vec<_> = std::iter::once(grad).chain(lhs.cloned()).chain(rhs.cloned()).collect();
    B::run(floats.into(), GsddmmGrad { plan: plan.clone(), side }).read().float()
}

/// The gradient of one operand, from that of the result and the operands that [`SddmmOp::gradient_reads`] names.
#[derive(Clone, Debug)]
pub(crate) struct GsddmmGrad {
    pub(crate) plan: GsddmmPlan,
    pub(crate) side: Side,
}

/// What a gradient is computed from.
pub(super) struct GradInputs<B: GnnBackend> {
    pub(super) grad: FloatTensor<B>,
    pub(super) lhs: Option<FloatTensor<B>>,
    pub(super) rhs: Option<FloatTensor<B>>,
}

impl GsddmmGrad {
    /// The inputs by name.
    pub(super) fn given<B: GnnBackend>(&self, inputs: Tensors<B>) -> GradInputs<B> {
        let (mut inputs, reads) = (inputs.read(), self.plan.op().gradient_reads(self.side));
        GradInputs {
            grad: inputs.float(),
            lhs: inputs.float_if(reads.0),
            rhs: inputs.float_if(reads.1),
        }
    }
}

impl Operator for GsddmmGrad {
    const NAME: &'static str = "gsddmm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.plan.operand_shape(self.side), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let GradInputs { grad, lhs, rhs } = self.given(inputs);
        Tensors::one(reference::gradient::<B>(grad, [lhs, rhs], &self.plan, self.side))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        cpu::gradient_of(self, self.given(inputs))
    }
}
