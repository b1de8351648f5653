//! Implements `Operator` for GSDDMM and its gradient. A gradient that is a GSpMM runs as one.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;
use burn_gnn_cpu::Kernels;
use burn_gnn_cpu::gsddmm::GradInputs;
use burn_gnn_plan::{Gather, GsddmmPlan, SddmmOp, Side};

use crate::gsddmm::reference;
use crate::gspmm::operator::{BinaryGradInputs, gspmm_on};
#[cfg(feature = "cube")]
use crate::operator::CubeTensors;
use crate::operator::cpu::{Host, by_dtype, floats_or_none};
use crate::operator::{BackwardCall, GnnBackend, Gradient, Operator, Spec, Specs, Tensors, run_on};

/// The sides of the inputs, in order.
fn sides(plan: &GsddmmPlan) -> &'static [Side] {
    match plan.op() {
        SddmmOp::CopyLhs => &[Side::Lhs],
        SddmmOp::CopyRhs => &[Side::Rhs],
        _ => &[Side::Lhs, Side::Rhs],
    }
}

/// GSDDMM. Inputs: the copied operand, or `lhs` and `rhs`.
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
        let mut inputs = inputs.read();
        let lhs = inputs.float();
        by_dtype!(lhs.dtype(), T => {
            let lhs = B::floats::<T>(&lhs);
            let out = match self.op() {
                SddmmOp::CopyLhs => T::gsddmm_copy(self, Side::Lhs, &lhs),
                SddmmOp::CopyRhs => T::gsddmm_copy(self, Side::Rhs, &lhs),
                _ => T::gsddmm(self, &lhs, &B::floats(&inputs.float())),
            };
            Tensors::one(B::from_floats(out, self.out_shape()))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let (op, mut inputs) = (self.op(), inputs.read());
        let (lhs, rhs) = (inputs.float_if(op.uses_lhs()), inputs.float_if(op.uses_rhs()));
        Tensors::one(burn_gnn_cube::gsddmm(self, lhs, rhs))
    }
    fn gradient(&self, tracked: &[bool]) -> Gradient {
        let reads = sides(self)
            .iter()
            .zip(tracked)
            .filter(|(_, tracked)| **tracked)
            .map(|(&side, _)| self.op().gradient_reads(side));
        let (lhs, rhs) = reads.fold((false, false), |a, b| (a.0 || b.0, a.1 || b.1));
        let keep = |side: &Side| if *side == Side::Lhs { lhs } else { rhs };
        Gradient::reading(sides(self).iter().map(keep).collect::<Vec<_>>(), false)
    }
    fn backward<B: GnnBackend>(&self, call: BackwardCall<B>) -> Vec<Option<FloatTensor<B>>> {
        let [lhs, rhs] = [0, 1].map(|i| call.inputs.get(i).and_then(Option::as_ref));
        let of = |(&side, &wanted): (&Side, &bool)| {
            wanted.then(|| gradient::<B>(call.grad.clone(), lhs, rhs, self, side))
        };
        sides(self).iter().zip(&call.wants).map(of).collect()
    }
}

/// Gradient of one side. `lhs` and `rhs` are present where [`SddmmOp::gradient_reads`] names them.
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
        (Some(Gather::Plain(plan)), _) => return gspmm_on::<B>(plan, [grad]),
        (Some(Gather::Negated(plan)), _) => {
            let sum = gspmm_on::<B>(plan, [grad]);
            // `0 - sum` and not `-sum`: the gradient of a node without edges is 0, not -0.
            return B::float_sub(
                B::float_zeros(sum.shape(), &sum.device(), sum.dtype().into()),
                sum,
            );
        }
        (Some(Gather::Weighted(plan)), Some(other)) => {
            return gspmm_on::<B>(plan, [other.clone(), grad]);
        }
        _ => {}
    }
    let floats = std::iter::once(grad).chain(lhs.cloned()).chain(rhs.cloned());
    run_on::<B, _>(GsddmmGrad { plan: plan.clone(), side }, floats)
}

/// Gradient of one operand. Inputs: the gradient of the result, and the operands that [`SddmmOp::gradient_reads`] names.
#[derive(Clone, Debug)]
pub(crate) struct GsddmmGrad {
    pub(crate) plan: GsddmmPlan,
    pub(crate) side: Side,
}

impl GsddmmGrad {
    /// Names the inputs.
    fn read<B: GnnBackend>(&self, inputs: Tensors<B>) -> BinaryGradInputs<B> {
        BinaryGradInputs::new(self.plan.op().gradient_reads(self.side), inputs)
    }
}

impl Operator for GsddmmGrad {
    const NAME: &'static str = "gsddmm";

    fn results(&self, inputs: &[Spec]) -> Option<Specs> {
        Specs::one(self.plan.operand_shape(self.side), inputs[0].dtype)
    }
    fn reference<B: GnnBackend>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let BinaryGradInputs { grad, lhs, rhs, .. } = self.read(inputs);
        Tensors::one(reference::gradient::<B>(grad, [lhs, rhs], &self.plan, self.side))
    }
    fn cpu<B: Host>(&self, inputs: Tensors<B>) -> Tensors<B> {
        let (Self { plan, side }, inputs) = (self, self.read(inputs));
        by_dtype!(inputs.grad.dtype(), T => {
            let (lhs, rhs) = (
                floats_or_none::<B, T>(inputs.lhs.as_ref()),
                floats_or_none::<B, T>(inputs.rhs.as_ref()),
            );
            let d = T::gsddmm_gradient(
                plan,
                *side,
                GradInputs { grad: &B::floats::<T>(&inputs.grad), lhs: &lhs, rhs: &rhs },
            );
            Tensors::one(B::from_floats(d, plan.operand_shape(*side)))
        })
    }
    #[cfg(feature = "cube")]
    fn cube(&self, inputs: CubeTensors) -> CubeTensors {
        let BinaryGradInputs { grad, lhs, rhs, .. } = self.read(inputs);
        Tensors::one(burn_gnn_cube::gsddmm_grad(&self.plan, self.side, grad, lhs, rhs))
    }
}
