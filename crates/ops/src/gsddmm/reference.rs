//! Composes GSDDMM of Burn primitives: the oracle of tests, and the fallback of backends without kernels.
//!
//! Both operand rows of every edge are copied out, so this costs memory for every edge.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, FloatDType, TensorMetadata};
use burn::tensor::{IndexingUpdateOp, Shape};

use super::{GsddmmPlan, SddmmOp, Target};
use crate::gspmm::Side;
use crate::primitives::{index, narrow, widen};

fn with_rows(rows: usize, features: &[usize]) -> Shape {
    let mut shape = vec![rows];
    shape.extend_from_slice(features);
    Shape::from(shape)
}

/// An operand's row for every edge, padded so that the backend broadcasts.
fn per_edge<B: Backend>(x: FloatTensor<B>, plan: &GsddmmPlan, side: Side) -> FloatTensor<B> {
    let device = x.device();
    let x = B::float_reshape(x, with_rows(plan.operand_rows(side), &plan.map(side).padded));
    match plan.target(side) {
        Target::Src => B::float_select(x, 0, index::<B>(plan.relation().src(), &device)),
        Target::Dst => B::float_select(x, 0, index::<B>(plan.relation().dst(), &device)),
        Target::Edge => x,
    }
}

fn is_empty(plan: &GsddmmPlan) -> bool {
    plan.relation().num_edges() == 0 || plan.width() == 0
}

/// `copy_lhs` and `copy_rhs`.
pub(crate) fn copy<B: Backend>(x: FloatTensor<B>, plan: &GsddmmPlan) -> FloatTensor<B> {
    if is_empty(plan) {
        return B::float_zeros(plan.out_shape(), &x.device(), FloatDType::from(x.dtype()));
    }
    per_edge::<B>(x, plan, if plan.op() == SddmmOp::CopyLhs { Side::Lhs } else { Side::Rhs })
}

/// Operators on two operands.
pub(crate) fn binary<B: Backend>(
    lhs: FloatTensor<B>,
    rhs: FloatTensor<B>,
    plan: &GsddmmPlan,
) -> FloatTensor<B> {
    let dtype = lhs.dtype();
    if is_empty(plan) {
        return B::float_zeros(plan.out_shape(), &lhs.device(), FloatDType::from(dtype));
    }
    let l = per_edge::<B>(widen::<B>(lhs), plan, Side::Lhs);
    let r = per_edge::<B>(widen::<B>(rhs), plan, Side::Rhs);
    let out = match plan.op() {
        SddmmOp::Add => B::float_add(l, r),
        SddmmOp::Sub => B::float_sub(l, r),
        SddmmOp::Mul => B::float_mul(l, r),
        SddmmOp::Div => B::float_div(l, r),
        // Without a feature axis the sum has one term.
        SddmmOp::Dot if plan.out().is_empty() => B::float_mul(l, r),
        SddmmOp::Dot => B::float_sum_dim(B::float_mul(l, r), plan.out().len()),
        SddmmOp::CopyLhs => l,
        SddmmOp::CopyRhs => r,
    };
    narrow::<B>(out, dtype)
}

/// Gradient for one operand, from one row per edge.
pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    [lhs, rhs]: [Option<FloatTensor<B>>; 2],
    plan: &GsddmmPlan,
    side: Side,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let shape = plan.operand_shape(side);
    if is_empty(plan) || shape.num_elements() == 0 {
        return B::float_zeros(shape, &device, FloatDType::from(dtype));
    }
    let g = widen::<B>(grad);
    let wide = g.dtype();
    let other = |x: FloatTensor<B>| per_edge::<B>(widen::<B>(x), plan, side.opposite());
    let mut d = match (plan.op(), side, lhs, rhs) {
        (SddmmOp::Mul | SddmmOp::Dot, Side::Lhs, _, Some(x))
        | (SddmmOp::Mul | SddmmOp::Dot, Side::Rhs, Some(x), _) => B::float_mul(g, other(x)),
        (SddmmOp::Div, Side::Lhs, _, Some(x)) => B::float_div(g, other(x)),
        (SddmmOp::Div, Side::Rhs, Some(x), Some(w)) => {
            let w = per_edge::<B>(widen::<B>(w), plan, Side::Rhs);
            // As in the kernels: w² may be out of range where the quotient is not.
            let quotient = B::float_div(other(x), w.clone());
            B::float_neg(B::float_div(B::float_mul(g, quotient), w))
        }
        (SddmmOp::Mul | SddmmOp::Dot | SddmmOp::Div, ..) => {
            unreachable!("backward keeps what `gradient_reads` names")
        }
        // Not a change of sign: of a gradient of 0 it is 0, not -0, as in the kernels.
        (SddmmOp::Sub, Side::Rhs, ..) => {
            B::float_sub(B::float_zeros(g.shape(), &device, FloatDType::from(wide)), g)
        }
        _ => g,
    };
    // The gradient of a dot may be as narrow as the other operand: every column of the own row gets it.
    let full = with_rows(plan.relation().num_edges(), plan.product());
    if plan.op() == SddmmOp::Dot && d.shape() != full {
        d = B::float_expand(d, full);
    }
    for (axis, (&own, &product)) in plan.map(side).padded.iter().zip(plan.product()).enumerate() {
        if own == 1 && product != 1 {
            d = B::float_sum_dim(d, axis + 1);
        }
    }
    let endpoints = match plan.target(side) {
        Target::Src => Some(plan.relation().src()),
        Target::Dst => Some(plan.relation().dst()),
        Target::Edge => None,
    };
    if let Some(endpoints) = endpoints {
        let zeros = B::float_zeros(
            with_rows(plan.operand_rows(side), &plan.map(side).padded),
            &device,
            FloatDType::from(wide),
        );
        d = B::float_select_assign(
            zeros,
            0,
            index::<B>(endpoints, &device),
            d,
            IndexingUpdateOp::Add,
        );
    }
    narrow::<B>(B::float_reshape(d, shape), dtype)
}
