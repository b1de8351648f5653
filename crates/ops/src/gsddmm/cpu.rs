//! Calls the CPU kernels of GSDDMM.

use burn::backend::TensorMetadata;
use burn_gnn_cpu::gsddmm as kernel;

use super::operator::{GradInputs, GsddmmGrad};
use super::{GsddmmPlan, SddmmOp};
use crate::gspmm::Side;
use crate::operator::Tensors;
use crate::operator::cpu::{Host, by_dtype, floats_or_none};

pub(super) fn forward<B: Host>(plan: &GsddmmPlan, inputs: Tensors<B>) -> Tensors<B> {
    let mut inputs = inputs.read();
    let lhs = inputs.float();
    by_dtype!(lhs.dtype(), T => {
        let lhs = B::floats::<T>(&lhs);
        let out = match plan.op() {
            SddmmOp::CopyLhs => kernel::copy::<T>(plan, Side::Lhs, &lhs),
            SddmmOp::CopyRhs => kernel::copy::<T>(plan, Side::Rhs, &lhs),
            _ => kernel::forward::<T>(plan, &lhs, &B::floats(&inputs.float())),
        };
        Tensors::one(B::from_floats(out, plan.out_shape()))
    })
}

pub(super) fn gradient_of<B: Host>(
    GsddmmGrad { plan, side }: &GsddmmGrad,
    given: GradInputs<B>,
) -> Tensors<B> {
    by_dtype!(given.grad.dtype(), T => {
        let (lhs, rhs) = (floats_or_none::<B, T>(given.lhs.as_ref()), floats_or_none::<B, T>(given.rhs.as_ref()));
        let d = kernel::gradient::<T>(plan, *side, kernel::GradInputs { grad: &B::floats::<T>(&given.grad), lhs: &lhs, rhs: &rhs });
        Tensors::one(B::from_floats(d, plan.operand_shape(*side)))
    })
}
