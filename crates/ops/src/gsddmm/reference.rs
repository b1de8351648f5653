//! Computes GSDDMM in Burn primitives: the oracle of tests, and the fallback of backends without kernels.
//!
//! It gathers both operand rows of every edge, which takes memory per edge.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Side, Target, with_rows};

use crate::primitives::{EdgeOperand, edge_op, edge_op_gradient, narrow, widen, zeros};

fn operand(plan: &GsddmmPlan, side: Side) -> EdgeOperand<'_> {
    let endpoints = match plan.target(side) {
        Target::Src => Some(plan.relation().src()),
        Target::Dst => Some(plan.relation().dst()),
        Target::Edge => None,
    };
    EdgeOperand { rows: plan.operand_rows(side), map: plan.map(side), endpoints }
}

fn is_empty(plan: &GsddmmPlan) -> bool {
    plan.relation().num_edges() == 0 || plan.width() == 0
}

/// Copies of one operand.
pub(crate) fn copy<B: Backend>(x: FloatTensor<B>, plan: &GsddmmPlan) -> FloatTensor<B> {
    if is_empty(plan) {
        return zeros::<B>(plan.out_shape(), &x);
    }
    let (dtype, side) =
        (x.dtype(), if plan.op() == SddmmOp::CopyLhs { Side::Lhs } else { Side::Rhs });
    narrow::<B>(operand(plan, side).per_edge::<B>(x), dtype)
}

/// Operators on two operands.
pub(crate) fn binary<B: Backend>(
    lhs: FloatTensor<B>,
    rhs: FloatTensor<B>,
    plan: &GsddmmPlan,
) -> FloatTensor<B> {
    if is_empty(plan) {
        return zeros::<B>(plan.out_shape(), &lhs);
    }
    let dtype = lhs.dtype();
    let l = operand(plan, Side::Lhs).per_edge::<B>(lhs);
    let r = operand(plan, Side::Rhs).per_edge::<B>(rhs);
    let mut out = edge_op::<B>(plan.op(), l, r);
    // Without a feature axis the dot product has one term.
    if plan.op() == SddmmOp::Dot && !plan.out().is_empty() {
        out = B::float_sum_dim(out, plan.out().len());
    }
    narrow::<B>(out, dtype)
}

/// Gradient of one operand, computed with one row per edge.
pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    [lhs, rhs]: [Option<FloatTensor<B>>; 2],
    plan: &GsddmmPlan,
    side: Side,
) -> FloatTensor<B> {
    let shape = plan.operand_shape(side);
    if is_empty(plan) || shape.num_elements() == 0 {
        return zeros::<B>(shape, &grad);
    }
    let dtype = grad.dtype();
    let g = widen::<B>(grad);
    let mut d = if (plan.op(), side) == (SddmmOp::Sub, Side::Rhs) {
        // `0 - g` and not `-g`: a gradient of 0 stays 0 and does not become -0, as in the kernels.
        B::float_sub(zeros::<B>(g.shape(), &g), g)
    } else {
        let l = lhs.map(|x| operand(plan, Side::Lhs).per_edge::<B>(x));
        let r = rhs.map(|x| operand(plan, Side::Rhs).per_edge::<B>(x));
        edge_op_gradient::<B>(plan.op(), side, g, [l, r])
    };
    // The gradient of a dot product may have the shape of a broadcast operand; it is expanded to all columns.
    let full = with_rows(plan.relation().num_edges(), plan.product());
    if plan.op() == SddmmOp::Dot && d.shape() != full {
        d = B::float_expand(d, full);
    }
    narrow::<B>(operand(plan, side).gradient::<B>(d, plan.product()), dtype)
}
