//! Computes GSpMM in Burn primitives: the oracle of tests, and the fallback of backends without kernels.
//!
//! It stores one message per edge and then reduces. Max and min run in rounds: round k compares the k-th in-edge of
//! every destination.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, TensorData};
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce, Side, with_rows};

use crate::primitives::{
    EdgeOperand, bools, constant, edge_op, edge_op_gradient, index, narrow, sum_rows, widen, zeros,
};

type Out<B> = (FloatTensor<B>, Option<IntTensor<B>>);

fn ints<B: Backend>(
    values: impl IntoIterator<Item = u32>,
    shape: Vec<usize>,
    device: &Device<B>,
) -> IntTensor<B> {
    let values: Vec<i32> = values.into_iter().map(|v| v as i32).collect();
    B::int_from_data(TensorData::new(values, shape), device)
}

/// The shape `[rows, 1, .., 1]` with as many axes as the result.
fn column(rows: usize, plan: &GspmmPlan) -> Vec<usize> {
    let mut shape = vec![1; plan.out().len() + 1];
    shape[0] = rows;
    shape
}

/// `lhs` is on sources, `rhs` on edges.
fn operand(plan: &GspmmPlan, side: Side) -> EdgeOperand<'_> {
    let endpoints = (side == Side::Lhs).then(|| plan.relation().src());
    EdgeOperand { rows: plan.operand_rows(side), map: plan.map(side), endpoints }
}

/// The results on a relation without edges.
fn nothing<B: Backend>(plan: &GspmmPlan, like: &FloatTensor<B>) -> Out<B> {
    let (out, shape) = (zeros::<B>(plan.out_shape(), like), plan.out_shape());
    let none = std::iter::repeat_n(u32::MAX, shape.num_elements());
    let arg = plan.reduce().selects().then(|| ints::<B>(none, shape.to_vec(), &like.device()));
    (out, arg)
}

fn is_empty(plan: &GspmmPlan) -> bool {
    plan.relation().num_edges() == 0 || plan.out_shape().num_elements() == 0
}

/// Copies. Returns the result, and the argmax for max and min.
pub(crate) fn copy<B: Backend>(x: FloatTensor<B>, plan: &GspmmPlan) -> Out<B> {
    if is_empty(plan) {
        return nothing::<B>(plan, &x);
    }
    let side = if plan.op() == BinaryOp::CopyLhs { Side::Lhs } else { Side::Rhs };
    let dtype = x.dtype();
    reduce::<B>(operand(plan, side).per_edge::<B>(x), plan, dtype)
}

/// Operators on two operands. Returns the result, and the argmax for max and min.
pub(crate) fn binary<B: Backend>(
    lhs: FloatTensor<B>,
    rhs: FloatTensor<B>,
    plan: &GspmmPlan,
) -> Out<B> {
    if is_empty(plan) {
        return nothing::<B>(plan, &lhs);
    }
    let dtype = lhs.dtype();
    let l = operand(plan, Side::Lhs).per_edge::<B>(lhs);
    let r = operand(plan, Side::Rhs).per_edge::<B>(rhs);
    reduce::<B>(edge_op::<B>(plan.op().into(), l, r), plan, dtype)
}

fn degrees<B: Backend>(plan: &GspmmPlan, like: &FloatTensor<B>) -> FloatTensor<B> {
    let degrees: Vec<f64> = plan.relation().in_degrees().map(|d| f64::from(d.max(1))).collect();
    let shape = column(degrees.len(), plan);
    constant::<B>(degrees, shape, like)
}

fn reduce<B: Backend>(messages: FloatTensor<B>, plan: &GspmmPlan, dtype: DType) -> Out<B> {
    if plan.reduce().selects() {
        let (out, arg) = select::<B>(messages, plan);
        return (narrow::<B>(out, dtype), Some(arg));
    }
    let dst = index::<B>(plan.relation().dst(), &messages.device());
    let mut out = sum_rows::<B>(plan.relation().num_dst(), dst, messages);
    if plan.reduce() == Reduce::Mean {
        let degrees = degrees::<B>(plan, &out);
        out = B::float_div(out, degrees);
    }
    (narrow::<B>(out, dtype), None)
}

fn select<B: Backend>(
    messages: FloatTensor<B>,
    plan: &GspmmPlan,
) -> (FloatTensor<B>, IntTensor<B>) {
    let (csc, device) = (plan.relation().csc(), messages.device());
    let (n, bool_dtype) = (csc.num_rows(), bools::<B>(&messages));
    // A destination with fewer edges repeats its first edge, which is never strictly better. Destinations without edges
    // take an arbitrary edge and are reset in the end.
    let nth = |k: usize| -> Vec<u32> {
        (0..n)
            .map(|v| match csc.row(v) {
                row if row.is_empty() => 0,
                row if k < row.len() => csc.edge_id(row.start + k),
                row => csc.edge_id(row.start),
            })
            .collect()
    };
    let wide_ids = |ids: &[u32]| {
        B::int_expand(ints::<B>(ids.iter().copied(), column(n, plan), &device), plan.out_shape())
    };
    let first = nth(0);
    let mut best = B::float_select(messages.clone(), 0, index::<B>(&first, &device));
    let mut arg = wide_ids(&first);
    for k in 1..(0..n).map(|v| csc.row(v).len()).max().unwrap_or(0) {
        let ids = nth(k);
        let next = B::float_select(messages.clone(), 0, index::<B>(&ids, &device));
        let beyond = match plan.reduce() {
            Reduce::Max => B::float_greater(next.clone(), best.clone(), bool_dtype),
            _ => B::float_lower(next.clone(), best.clone(), bool_dtype),
        };
        let nan = B::bool_and(
            B::float_is_nan(next.clone(), bool_dtype),
            B::bool_not(B::float_is_nan(best.clone(), bool_dtype)),
        );
        let take = B::bool_or(beyond, nan);
        best = B::float_mask_where(best, take.clone(), next);
        arg = B::int_mask_where(arg, take, wide_ids(&ids));
    }
    let degree = ints::<B>((0..n).map(|v| csc.row(v).len() as u32), column(n, plan), &device);
    let without_edges =
        B::int_equal_elem(B::int_expand(degree, plan.out_shape()), 0.into(), bool_dtype);
    (
        B::float_mask_fill(best, without_edges.clone(), 0.0.into()),
        B::int_mask_fill(arg, without_edges, (-1).into()),
    )
}

/// Gradient of one operand, computed with one row per edge.
pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    arg: Option<IntTensor<B>>,
    [lhs, rhs]: [Option<&FloatTensor<B>>; 2],
    plan: &GspmmPlan,
    side: Side,
) -> FloatTensor<B> {
    if is_empty(plan) || plan.operand_shape(side).num_elements() == 0 {
        return zeros::<B>(plan.operand_shape(side), &grad);
    }
    let (dtype, device) = (grad.dtype(), grad.device());
    let (rel, dst) = (plan.relation(), index::<B>(plan.relation().dst(), &device));
    let mut grad = widen::<B>(grad);
    if plan.reduce() == Reduce::Mean {
        let degrees = degrees::<B>(plan, &grad);
        grad = B::float_div(grad, degrees);
    }
    let g = B::float_select(grad, 0, dst.clone());
    let reads = plan.op().gradient_reads(side);
    let row = |reads: bool, x: Option<&FloatTensor<B>>, side| {
        x.filter(|_| reads).map(|x| operand(plan, side).per_edge::<B>(x.clone()))
    };
    let rows = [row(reads.0, lhs, Side::Lhs), row(reads.1, rhs, Side::Rhs)];
    let mut d = edge_op_gradient::<B>(plan.op().into(), side, g, rows);
    if let Some(arg) = arg {
        let ids = ints::<B>(0..rel.num_edges() as u32, column(rel.num_edges(), plan), &device);
        let ids = B::int_expand(ids, with_rows(rel.num_edges(), plan.out()));
        let not_argmax = B::int_not_equal(B::int_select(arg, 0, dst), ids, bools::<B>(&d));
        d = B::float_mask_fill(d, not_argmax, 0.0.into());
    }
    // -0 + 0 is 0.
    let d = B::float_add_scalar(operand(plan, side).gradient::<B>(d, plan.out()), 0.0.into());
    narrow::<B>(d, dtype)
}
