//! Composes GSpMM of Burn primitives: the oracle of tests, and the fallback of backends without kernels.
//!
//! One message per edge is made and then reduced, so this costs memory for every edge. Max and min go
//! by rounds, the k-th in-edge of every destination in round k.

use burn::backend::tensor::{Device, FloatTensor, IntTensor};
use burn::backend::{Backend, BoolDType, FloatDType, TensorMetadata, get_device_settings};
use burn::tensor::{DType, IndexingUpdateOp, Shape, TensorData};

use super::{BinaryOp, GspmmPlan, Reduce, Side};
use crate::primitives::{index, narrow, widen};

type Out<B> = (FloatTensor<B>, Option<IntTensor<B>>);

fn ints<B: Backend>(
    values: impl IntoIterator<Item = u32>,
    shape: Vec<usize>,
    device: &Device<B>,
) -> IntTensor<B> {
    let values: Vec<i32> = values.into_iter().map(|v| v as i32).collect();
    B::int_from_data(TensorData::new(values, shape), device)
}

fn bools<B: Backend>(device: &Device<B>) -> BoolDType {
    get_device_settings::<B>(device).bool_dtype
}

/// `[rows, 1, .., 1]` with as many axes as the result.
fn column(rows: usize, plan: &GspmmPlan) -> Vec<usize> {
    let mut shape = vec![1; plan.out().len() + 1];
    shape[0] = rows;
    shape
}

fn with_rows(rows: usize, features: &[usize]) -> Shape {
    let mut shape = vec![rows];
    shape.extend_from_slice(features);
    Shape::from(shape)
}

/// The argmax of a relation without edges.
pub(crate) fn no_argmax<B: Backend>(plan: &GspmmPlan, device: &Device<B>) -> IntTensor<B> {
    let shape = plan.out_shape();
    ints::<B>(std::iter::repeat_n(u32::MAX, shape.num_elements()), shape.to_vec(), device)
}

/// An operand's row for every edge, padded so that the backend broadcasts.
fn per_edge<B: Backend>(x: FloatTensor<B>, plan: &GspmmPlan, side: Side) -> FloatTensor<B> {
    let device = x.device();
    let shape = with_rows(plan.operand_rows(side), &plan.map(side).padded);
    let x = B::float_reshape(x, shape);
    match side {
        Side::Lhs => B::float_select(x, 0, index::<B>(plan.relation().src(), &device)),
        Side::Rhs => x,
    }
}

fn nothing<B: Backend>(plan: &GspmmPlan, device: &Device<B>, dtype: DType) -> Out<B> {
    let zeros = B::float_zeros(plan.out_shape(), device, FloatDType::from(dtype));
    (zeros, plan.reduce().selects().then(|| no_argmax::<B>(plan, device)))
}

fn is_empty(plan: &GspmmPlan) -> bool {
    plan.relation().num_edges() == 0 || plan.out_shape().num_elements() == 0
}

/// `copy_lhs` and `copy_rhs`; argmax for max and min.
pub(crate) fn copy<B: Backend>(x: FloatTensor<B>, plan: &GspmmPlan) -> Out<B> {
    let (dtype, device) = (x.dtype(), x.device());
    if is_empty(plan) {
        return nothing::<B>(plan, &device, dtype);
    }
    let side = if plan.op() == BinaryOp::CopyLhs { Side::Lhs } else { Side::Rhs };
    reduce::<B>(per_edge::<B>(widen::<B>(x), plan, side), plan, dtype)
}

/// Operators on two operands; argmax for max and min.
pub(crate) fn binary<B: Backend>(
    lhs: FloatTensor<B>,
    rhs: FloatTensor<B>,
    plan: &GspmmPlan,
) -> Out<B> {
    let (dtype, device) = (lhs.dtype(), lhs.device());
    if is_empty(plan) {
        return nothing::<B>(plan, &device, dtype);
    }
    let l = per_edge::<B>(widen::<B>(lhs), plan, Side::Lhs);
    let r = per_edge::<B>(widen::<B>(rhs), plan, Side::Rhs);
    let messages = match plan.op() {
        BinaryOp::Add => B::float_add(l, r),
        BinaryOp::Sub => B::float_sub(l, r),
        BinaryOp::Mul => B::float_mul(l, r),
        BinaryOp::Div => B::float_div(l, r),
        BinaryOp::CopyLhs => l,
        BinaryOp::CopyRhs => r,
    };
    reduce::<B>(messages, plan, dtype)
}

fn degrees<B: Backend>(plan: &GspmmPlan, dtype: DType, device: &Device<B>) -> FloatTensor<B> {
    let degrees: Vec<f64> = plan.relation().in_degrees().map(|d| f64::from(d.max(1))).collect();
    let shape = column(degrees.len(), plan);
    B::float_from_data(TensorData::new(degrees, shape).convert_dtype(dtype), device)
}

fn reduce<B: Backend>(messages: FloatTensor<B>, plan: &GspmmPlan, dtype: DType) -> Out<B> {
    let (wide, device) = (messages.dtype(), messages.device());
    if plan.reduce().selects() {
        let (out, arg) = select::<B>(messages, plan);
        return (narrow::<B>(out, dtype), Some(arg));
    }
    let zeros = B::float_zeros(plan.out_shape(), &device, FloatDType::from(wide));
    let sum = B::float_select_assign(
        zeros,
        0,
        index::<B>(plan.relation().dst(), &device),
        messages,
        IndexingUpdateOp::Add,
    );
    let out = if plan.reduce() == Reduce::Mean {
        B::float_div(sum, degrees::<B>(plan, wide, &device))
    } else {
        sum
    };
    (narrow::<B>(out, dtype), None)
}

fn select<B: Backend>(
    messages: FloatTensor<B>,
    plan: &GspmmPlan,
) -> (FloatTensor<B>, IntTensor<B>) {
    let (csc, device) = (plan.relation().csc(), messages.device());
    let (n, bool_dtype) = (csc.num_rows(), bools::<B>(&device));
    // A row that has fewer edges repeats its first, which is never strictly better. Rows without edges
    // take any edge and are blanked in the end.
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
    let lonely = B::int_equal_elem(B::int_expand(degree, plan.out_shape()), 0.into(), bool_dtype);
    (
        B::float_mask_fill(best, lonely.clone(), 0.0.into()),
        B::int_mask_fill(arg, lonely, (-1).into()),
    )
}

/// Gradient for one operand, from the same per-edge messages.
pub(crate) fn gradient<B: Backend>(
    grad: FloatTensor<B>,
    arg: Option<IntTensor<B>>,
    [lhs, rhs]: [Option<&FloatTensor<B>>; 2],
    plan: &GspmmPlan,
    side: Side,
) -> FloatTensor<B> {
    let (dtype, device) = (grad.dtype(), grad.device());
    let shape = plan.operand_shape(side);
    if is_empty(plan) || shape.num_elements() == 0 {
        return B::float_zeros(shape, &device, FloatDType::from(dtype));
    }
    let (rel, dst) = (plan.relation(), index::<B>(plan.relation().dst(), &device));
    let mut grad = widen::<B>(grad);
    let wide = grad.dtype();
    if plan.reduce() == Reduce::Mean {
        grad = B::float_div(grad, degrees::<B>(plan, wide, &device));
    }
    let g = B::float_select(grad, 0, dst.clone());
    let row = |x: &FloatTensor<B>, side| per_edge::<B>(widen::<B>(x.clone()), plan, side);
    let mut d = match (plan.op(), side, lhs, rhs) {
        (BinaryOp::Mul, Side::Lhs, _, Some(r)) => B::float_mul(g, row(r, Side::Rhs)),
        (BinaryOp::Mul, Side::Rhs, Some(l), _) => B::float_mul(g, row(l, Side::Lhs)),
        (BinaryOp::Div, Side::Lhs, _, Some(r)) => B::float_div(g, row(r, Side::Rhs)),
        (BinaryOp::Div, Side::Rhs, Some(l), Some(r)) => {
            let r = row(r, Side::Rhs);
            // As in the kernels: w² may be out of range where the quotient is not.
            let quotient = B::float_div(row(l, Side::Lhs), r.clone());
            B::float_neg(B::float_div(B::float_mul(g, quotient), r))
        }
        (BinaryOp::Mul | BinaryOp::Div, ..) => {
            unreachable!("backward keeps what `gradient_reads` names")
        }
        (BinaryOp::Sub, Side::Rhs, ..) => B::float_neg(g),
        _ => g,
    };
    if let Some(arg) = arg {
        let ids = ints::<B>(0..rel.num_edges() as u32, column(rel.num_edges(), plan), &device);
        let ids = B::int_expand(ids, with_rows(rel.num_edges(), plan.out()));
        let lost = B::int_not_equal(B::int_select(arg, 0, dst), ids, bools::<B>(&device));
        d = B::float_mask_fill(d, lost, 0.0.into());
    }
    for (axis, (&own, &out)) in plan.map(side).padded.iter().zip(plan.out()).enumerate() {
        if own == 1 && out != 1 {
            d = B::float_sum_dim(d, axis + 1);
        }
    }
    if side == Side::Lhs {
        let zeros = B::float_zeros(
            with_rows(rel.num_src(), &plan.map(side).padded),
            &device,
            FloatDType::from(wide),
        );
        d = B::float_select_assign(
            zeros,
            0,
            index::<B>(rel.src(), &device),
            d,
            IndexingUpdateOp::Add,
        );
    }
    narrow::<B>(B::float_reshape(d, shape), dtype)
}
