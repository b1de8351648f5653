//! Computes GSpMM: messages along edges, reduced at destinations.

mod named_ops;
pub(crate) mod operator;
pub(crate) mod reference;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub(crate) use burn_gnn_plan::GspmmPlan;
pub use burn_gnn_plan::{BinaryOp, Reduce, Side};
pub use named_ops::*;
#[cfg(test)]
pub(crate) use operator::GspmmGrad;
pub(crate) use operator::{Gspmm, gspmm_on};

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;

use crate::OpsError;
use crate::check::{self, accept, check_same};
use crate::dense::precision::enter;
use crate::operator::{reference as plain, tensor};

const NAME: &str = "gspmm";

/// Message passing along in-edges, `out[v] = reduce over e = (u, v) of op(lhs[u], rhs[e])` (GSpMM).
///
/// # Shapes
/// - `lhs`: `[num_src, ..]`; `rhs`: `[num_edges, ..]` in edge-id order
/// - returns `[num_dst, ..]`; feature shapes (all but the first axis) broadcast as in NumPy: aligned at
///   the end, equal or 1, a missing axis counts as 1. A 1-D operand is one number per row and
///   broadcasts with anything.
/// - A copy does not look at the other operand, whatever its shape; its result has its operand's
///   feature shape. [`gspmm_copy`] takes one operand only.
///
/// # Semantics
/// - A destination without in-edges gets 0 from every reducer. That is decided by degree: a `-inf` or
///   NaN message propagates.
/// - Parallel edges all count; mean divides by the number of in-edges.
/// - Of equal messages under max or min the one with the smallest edge id wins; the first NaN wins over
///   every number.
/// - f16 and bf16 are summed in f32; [`with_precision`](crate::with_precision) makes them of f32 inputs. On
///   CPU sums run in ascending edge id, so results are the same bits for any number of threads.
///
/// # Gradients
/// The gradient of `lhs` gathers over out-edges, that of `rhs` over edges; broadcast axes are summed.
/// Under max and min only the argmax (argmin) edge passes it on. Kept for backward: nothing for add, sub and
/// copies; `rhs` of mul and div if `lhs` is tracked; `lhs` of mul if `rhs` is tracked, both of div; for
/// max and min the argmax edge ids, on CPU of copied sources whose features are a multiple of 16 a bit per edge and
/// feature if that is smaller. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_gspmm`] returns.
///
/// # Cost
/// `O(num_edges · features)` time, no per-edge temporary; parallel over destinations with equal
/// numbers of edges.
///
/// # Source
/// Name and set of operators are those of DGL (Wang et al., 2019, arXiv:1909.01315).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{BinaryOp, Reduce, gspmm};
/// let device = Device::flex();
/// let rel = Relation::from_coo(2, 3, vec![0, 1, 1], vec![0, 0, 2])?;
/// let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
/// let w = Tensor::<1>::from_data([1.0, 10.0, 0.5], &device); // one weight per edge
/// let y: Tensor<2> = gspmm(&rel, BinaryOp::Mul, Reduce::Sum, x, w);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [31.0, 42.0, 0.0, 0.0, 1.5, 2.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn gspmm<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Tensor<O> {
    accept(try_gspmm(relation, op, reduce, lhs, rhs))
}

/// [`gspmm`] that returns what is wrong with its arguments.
///
/// # Errors
/// Numbers of rows that are not those of the relation, feature shapes that do not broadcast or whose rows
/// have more than `u32::MAX` entries, an output rank that is not that of the result, element types or devices that
/// differ, an element type without a kernel.
pub fn try_gspmm<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Result<Tensor<O>, OpsError> {
    match op {
        BinaryOp::CopyLhs => return try_copy(relation, op, reduce, lhs),
        BinaryOp::CopyRhs => return try_copy(relation, op, reduce, rhs),
        _ => {}
    }
    let (lhs, rhs) = (enter(NAME, "lhs", lhs)?, enter(NAME, "rhs", rhs)?);
    let plan = plan_binary::<L, R, O>(relation, op, reduce, &lhs, &rhs)?;
    Ok(tensor(Gspmm::new(plan), [lhs.into_dispatch(), rhs.into_dispatch()]))
}

/// [`gspmm`] of one operand, `out[v] = reduce over e = (u, v) of x[u]` (`from = Side::Lhs`, source features) or of
/// `x[e]` (`Side::Rhs`, edge features).
///
/// # Shapes
/// - `x`: `[num_src, ..]` or `[num_edges, ..]` in edge-id order
/// - returns `[num_dst, ..]`
///
/// # Semantics, gradients, cost
/// Those of [`gspmm`]. Kept for backward: the argmax for max and min, nothing else.
///
/// # Panics
/// With the text of the error that [`try_gspmm_copy`] returns.
#[track_caller]
pub fn gspmm_copy<const D: usize>(
    relation: &Relation,
    from: Side,
    reduce: Reduce,
    x: Tensor<D>,
) -> Tensor<D> {
    accept(try_gspmm_copy(relation, from, reduce, x))
}

/// [`gspmm_copy`] that returns what is wrong with its arguments.
///
/// # Errors
/// A number of rows that is not that of the relation, rows of more than `u32::MAX` entries, or an element
/// type without a kernel.
pub fn try_gspmm_copy<const D: usize>(
    relation: &Relation,
    from: Side,
    reduce: Reduce,
    x: Tensor<D>,
) -> Result<Tensor<D>, OpsError> {
    let op = match from {
        Side::Lhs => BinaryOp::CopyLhs,
        Side::Rhs => BinaryOp::CopyRhs,
    };
    try_copy(relation, op, reduce, x)
}

/// [`gspmm`] in plain tensor operations, on any backend, differentiated by Burn: slow, short, and what
/// the kernels are tested against.
///
/// # Panics
/// As [`gspmm`].
///
/// # Cost
/// One message per edge in memory; max and min take one round per in-edge of the busiest destination.
#[track_caller]
pub fn gspmm_reference<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Tensor<O> {
    match op {
        BinaryOp::CopyLhs => {
            let plan = accept(plan_copy::<L, O>(relation, op, reduce, &lhs));
            plain(Gspmm::new(plan), [lhs.into_dispatch()])
        }
        BinaryOp::CopyRhs => {
            let plan = accept(plan_copy::<R, O>(relation, op, reduce, &rhs));
            plain(Gspmm::new(plan), [rhs.into_dispatch()])
        }
        _ => {
            let plan = accept(plan_binary::<L, R, O>(relation, op, reduce, &lhs, &rhs));
            plain(Gspmm::new(plan), [lhs.into_dispatch(), rhs.into_dispatch()])
        }
    }
}

fn try_copy<const D: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    x: Tensor<D>,
) -> Result<Tensor<O>, OpsError> {
    let x = enter(NAME, if op == BinaryOp::CopyLhs { "lhs" } else { "rhs" }, x)?;
    let plan = plan_copy::<D, O>(relation, op, reduce, &x)?;
    Ok(tensor(Gspmm::new(plan), [x.into_dispatch()]))
}

fn check_operand<const D: usize>(
    relation: &Relation,
    side: Side,
    x: &Tensor<D>,
) -> Result<Vec<usize>, OpsError> {
    let (arg, why, expected) = match side {
        Side::Lhs => ("lhs", "one per source node of the relation", relation.num_src()),
        Side::Rhs => ("rhs", "one per edge of the relation", relation.num_edges()),
    };
    check::check_operand(NAME, (arg, x), why, expected)
}

fn plan_copy<const D: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    x: &Tensor<D>,
) -> Result<GspmmPlan, OpsError> {
    let side = if op == BinaryOp::CopyLhs { Side::Lhs } else { Side::Rhs };
    let row = check_operand(relation, side, x)?;
    plan(relation, op, reduce, row.clone(), row, O)
}

fn plan_binary<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: &Tensor<L>,
    rhs: &Tensor<R>,
) -> Result<GspmmPlan, OpsError> {
    let (l, r) =
        (check_operand(relation, Side::Lhs, lhs)?, check_operand(relation, Side::Rhs, rhs)?);
    check_same(NAME, ("lhs", lhs), ("rhs", rhs))?;
    plan(relation, op, reduce, l, r, O)
}

fn plan(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Vec<usize>,
    rhs: Vec<usize>,
    rank: usize,
) -> Result<GspmmPlan, OpsError> {
    let plan = GspmmPlan::new(relation, op, reduce, &lhs, &rhs)
        .map_err(|misfit| misfit.of(NAME, &lhs, &rhs))?;
    let expected = plan.out().len() + 1;
    if rank == expected {
        Ok(plan)
    } else {
        Err(OpsError::Rank { op: NAME, expected, actual: rank })
    }
}
