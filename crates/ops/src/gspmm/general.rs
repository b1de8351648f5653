//! Defines the general form of GSpMM.

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{BinaryOp, GspmmPlan, Reduce, Side, Target};

use crate::check::{accept, check_operands, check_rank};
use crate::dense::precision::enter_if;
use crate::error::OpsError;
use crate::gspmm::operator::Gspmm;
use crate::operator::{operands, reference as plain, tensor};

pub(crate) const NAME: &str = "gspmm";

/// Message passing along in-edges, `out[v] = reduce over e = (u, v) of op(lhs[u], rhs[e])` (GSpMM).
///
/// # Shapes
/// - `lhs`: `[num_src, ..]`; `rhs`: `[num_edges, ..]` in edge-id order
/// - returns `[num_dst, ..]`; feature shapes (all but the first axis) broadcast as in NumPy: aligned at
///   the end, equal or 1, a missing axis counts as 1. A 1-D operand is one number per row and
///   broadcasts with anything.
/// - A copy ignores the other operand and its shape; the result has the feature shape of the copied operand.
///   [`gspmm_copy`] takes a single operand.
///
/// # Semantics
/// - A destination without in-edges gets 0 from every reducer. The degree decides, so a `-inf` or NaN message
///   propagates.
/// - Parallel edges all count; mean divides by the number of in-edges.
/// - Of equal messages under max or min the one with the smallest edge id is the argmax. A NaN is beyond every number;
///   of several the first is the argmax.
/// - f16 and bf16 are summed in f32; [`with_precision`](crate::with_precision) casts f32 inputs to them. On CPUs sums
///   run in ascending edge id, so results are the same bits for any number of threads.
///
/// # Gradients
/// The gradient of `lhs` is a sum over out-edges, the gradient of `rhs` has one row per edge. Broadcast axes are
/// summed. Under max and min only the argmax (argmin) edge has a gradient. A gradient of 0 is 0, never -0.
///
/// Saved for backward:
///
/// - add, sub and copies: nothing
/// - mul: `rhs` if `lhs` is tracked, `lhs` if `rhs` is tracked
/// - div: `rhs` if `lhs` is tracked, both if `rhs` is tracked
/// - max and min: the argmax edge ids. CPU kernels that copy sources whose feature size is a multiple of 16 save one bit
///   per edge and feature instead, where that is smaller.
///
/// Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_gspmm`] returns.
///
/// # Cost
/// `O(num_edges · features)` time and no temporary per edge. Threads process runs of destinations with equal numbers of
/// edges.
///
/// # Source
/// The name and the set of operators are DGL's (Wang et al., 2019, arXiv:1909.01315).
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

/// [`gspmm`] that returns an error instead of panicking.
///
/// # Errors
/// Wrong numbers of rows; feature shapes that do not broadcast or whose rows have more than `u32::MAX` entries; an
/// output type whose rank is not the rank of the result; different element types or devices; an element type without a
/// kernel.
pub fn try_gspmm<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Result<Tensor<O>, OpsError> {
    try_gspmm_operands(
        relation,
        op,
        reduce,
        op.uses_lhs().then_some(lhs),
        op.uses_rhs().then_some(rhs),
    )
}

/// [`gspmm`] of a single operand: `out[v] = reduce over e = (u, v) of x[u]` for `from = Side::Lhs` (source features), or
/// of `x[e]` for `Side::Rhs` (edge features).
///
/// # Shapes
/// - `x`: `[num_src, ..]` or `[num_edges, ..]` in edge-id order
/// - returns `[num_dst, ..]`
///
/// # Semantics, gradients, cost
/// As [`gspmm`]. Saved for backward: the argmax for max and min, otherwise nothing.
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

/// [`gspmm_copy`] that returns an error instead of panicking.
///
/// # Errors
/// A wrong number of rows; rows of more than `u32::MAX` entries; an element type without a kernel.
pub fn try_gspmm_copy<const D: usize>(
    relation: &Relation,
    from: Side,
    reduce: Reduce,
    x: Tensor<D>,
) -> Result<Tensor<D>, OpsError> {
    match from {
        Side::Lhs => {
            try_gspmm_operands(relation, BinaryOp::CopyLhs, reduce, Some(x), None::<Tensor<D>>)
        }
        Side::Rhs => {
            try_gspmm_operands(relation, BinaryOp::CopyRhs, reduce, None::<Tensor<D>>, Some(x))
        }
    }
}

/// [`gspmm`] in plain tensor operations, on any backend, differentiated by Burn: the slow and short reference for tests
/// of the kernels.
///
/// # Panics
/// As [`gspmm`].
///
/// # Cost
/// It stores one message per edge. Max and min take as many rounds as the largest in-degree.
#[track_caller]
pub fn gspmm_reference<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Tensor<O> {
    let (lhs, rhs) = (op.uses_lhs().then_some(lhs), op.uses_rhs().then_some(rhs));
    let plan = accept(plan::<L, R, O>(relation, op, reduce, lhs.as_ref(), rhs.as_ref()));
    plain(Gspmm::new(plan), operands(lhs, rhs))
}

/// [`try_gspmm`] with only the operands that the operator reads.
pub(crate) fn try_gspmm_operands<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Option<Tensor<L>>,
    rhs: Option<Tensor<R>>,
) -> Result<Tensor<O>, OpsError> {
    let (lhs, rhs) = (enter_if(NAME, "lhs", lhs)?, enter_if(NAME, "rhs", rhs)?);
    let plan = plan::<L, R, O>(relation, op, reduce, lhs.as_ref(), rhs.as_ref())?;
    Ok(tensor(Gspmm::new(plan), operands(lhs, rhs)))
}

fn plan<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: BinaryOp,
    reduce: Reduce,
    lhs: Option<&Tensor<L>>,
    rhs: Option<&Tensor<R>>,
) -> Result<GspmmPlan, OpsError> {
    let [lhs, rhs] = check_operands(NAME, relation, [Target::Src, Target::Edge], lhs, rhs)?;
    let plan = GspmmPlan::new(relation, op, reduce, &lhs, &rhs)
        .map_err(|misfit| misfit.of(NAME, &lhs, &rhs))?;
    check_rank(NAME, plan.out(), O)?;
    Ok(plan)
}
