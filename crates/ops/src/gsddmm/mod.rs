//! Computes GSDDMM: a result per edge from the features of its endpoints and its own.

#[cfg(all(test, feature = "flex", feature = "ndarray"))]
#[allow(deprecated)]
mod fallback_tests;
mod named;
mod named_ops;
mod operator;
mod reference;

pub(crate) use burn_gnn_plan::{Gather, GsddmmPlan};
pub use burn_gnn_plan::{SddmmOp, Target};
pub(crate) use named::with_binaries;
pub use named_ops::*;
#[cfg(test)]
pub(crate) use operator::GsddmmGrad;

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;

use crate::OpsError;
use crate::check::{self, accept, check_same};
use crate::dense::precision::enter;
use crate::operator::{reference as plain, tensor};

const NAME: &str = "gsddmm";

/// A result for every edge `e = (u, v)`: `out[e] = op(lhs at its target, rhs at its target)` (GSDDMM).
///
/// A target is `u` (the edge's source), `v` (its destination) or `e` (the edge); every pair is allowed,
/// twice the same too. The common cases have names: [`u_add_v`], [`u_dot_v`], [`e_div_v`], [`copy_u`].
///
/// # Shapes
/// - `lhs`, `rhs`: `[num_src, ..]`, `[num_dst, ..]` or `[num_edges, ..]`, as the target says
/// - returns `[num_edges, ..]` in edge-id order; feature shapes (all but the first axis) broadcast as in
///   NumPy: aligned at the end, equal or 1, a missing axis counts as 1
/// - [`Dot`](SddmmOp::Dot) broadcasts as a product does, then sums the last axis and keeps it with size 1.
///   Two 1-D operands have no such axis; their dot is their product.
/// - A copy does not look at the other operand, whatever its shape; its result has its operand's
///   feature shape. [`gsddmm_copy`] takes one operand only.
///
/// # Semantics
/// - Edges are independent of each other: parallel edges have equal results if their operands are equal,
///   nodes without edges are never read.
/// - f16 and bf16 are computed in f32 and rounded once. The same bits for any number of threads: sums of
///   a dot run in 16 fixed partial sums, gradients of nodes in ascending edge id.
/// - Infinities and NaN pass as the operator passes them; `x / 0` is infinite.
///
/// # Gradients
/// Of an operand on nodes: a sum over the node's edges, by CSR for `u` and by CSC for `v`; 0 for a node
/// without edges. Where no axis is summed it runs as a GSpMM (that of `u_dot_v` is `u_mul_e_sum` on the
/// relation, reversed for `u`), so that nothing of size edges × features is made. Of an operand on
/// edges: edge by edge. Broadcast axes are summed. Kept for backward: nothing for add, sub and copies; the
/// other operand for mul and dot; `rhs` of div if `lhs` is tracked, both if `rhs` is. The gradient of the operand that
/// is subtracted is 0 minus the sum, so where the sum is 0 it is 0, never -0. The gradient itself
/// is not differentiable and panics if asked.
///
/// # Panics
/// With the text of the error that [`try_gsddmm`] returns.
///
/// # Cost
/// One read of two operand rows and one write of a result row per edge, no temporary. Edges run in id
/// order, rows are prefetched. A dot of two endpoints with rows of 64 bytes and more runs in CSC order
/// instead, `num_edges · D · 4` bytes read for the sources, `num_dst · D · 4` for the destinations.
///
/// # Source
/// Name and set of operators are those of DGL (Wang et al., 2019, arXiv:1909.01315).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{SddmmOp, Target, gsddmm, u_dot_v};
/// let device = Device::flex();
/// let rel = Relation::from_coo(2, 2, vec![0, 1, 1], vec![0, 0, 1])?;
/// let x = Tensor::<2>::from_data([[1.0, 2.0], [3.0, 4.0]], &device);
/// let y: Tensor<2> = u_dot_v(&rel, x.clone(), x.clone());
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [5.0, 11.0, 25.0]);
/// let z: Tensor<2> = gsddmm(&rel, SddmmOp::Sub, Target::Dst, Target::Src, x.clone(), x);
/// assert_eq!(z.into_data().try_to_vec::<f32>().unwrap(), [0.0, 0.0, -2.0, -2.0, 0.0, 0.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn gsddmm<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    lhs_target: Target,
    rhs_target: Target,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Tensor<O> {
    accept(try_gsddmm(relation, op, lhs_target, rhs_target, lhs, rhs))
}

/// [`gsddmm`] that returns what is wrong with its arguments.
///
/// # Errors
/// Numbers of rows that are not those of the target, feature shapes that do not broadcast or whose rows
/// have more than `u32::MAX` entries, an output rank that is not that of the result, element types or
/// devices that differ, an element type without a kernel.
pub fn try_gsddmm<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    lhs_target: Target,
    rhs_target: Target,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Result<Tensor<O>, OpsError> {
    match op {
        SddmmOp::CopyLhs => return try_copy(relation, op, lhs_target, lhs),
        SddmmOp::CopyRhs => return try_copy(relation, op, rhs_target, rhs),
        _ => {}
    }
    let (lhs, rhs) = (enter(NAME, "lhs", lhs)?, enter(NAME, "rhs", rhs)?);
    let plan = plan_binary::<L, R, O>(relation, op, [lhs_target, rhs_target], &lhs, &rhs)?;
    Ok(tensor(plan, [lhs.into_dispatch(), rhs.into_dispatch()]))
}

/// [`gsddmm`] of one operand, `out[e] = x at its target`: source, destination or edge features.
///
/// # Shapes
/// - `x`: `[num_src, ..]`, `[num_dst, ..]` or `[num_edges, ..]`, as the target says
/// - returns `[num_edges, ..]` in edge-id order
///
/// # Gradients
/// Of a node's row the sum over the node's edges, in ascending edge id; 0 for a node without edges. Nothing is kept.
///
/// # Cost
/// One read and one write of a row per edge.
///
/// # Panics
/// With the text of the error that [`try_gsddmm_copy`] returns.
#[track_caller]
pub fn gsddmm_copy<const D: usize>(relation: &Relation, target: Target, x: Tensor<D>) -> Tensor<D> {
    accept(try_gsddmm_copy(relation, target, x))
}

/// [`gsddmm_copy`] that returns what is wrong with its arguments.
///
/// # Errors
/// A number of rows that is not that of the target, rows of more than `u32::MAX` entries, or an element
/// type without a kernel.
pub fn try_gsddmm_copy<const D: usize>(
    relation: &Relation,
    target: Target,
    x: Tensor<D>,
) -> Result<Tensor<D>, OpsError> {
    try_copy(relation, SddmmOp::CopyLhs, target, x)
}

/// [`gsddmm`] in plain tensor operations, on any backend, differentiated by Burn: slow, short, and what
/// the kernels are tested against.
///
/// # Panics
/// As [`gsddmm`].
///
/// # Cost
/// Both operands of every edge in memory.
#[track_caller]
pub fn gsddmm_reference<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    lhs_target: Target,
    rhs_target: Target,
    lhs: Tensor<L>,
    rhs: Tensor<R>,
) -> Tensor<O> {
    match op {
        SddmmOp::CopyLhs => {
            let plan = accept(plan_copy::<L, O>(relation, op, lhs_target, &lhs));
            plain(plan, [lhs.into_dispatch()])
        }
        SddmmOp::CopyRhs => {
            let plan = accept(plan_copy::<R, O>(relation, op, rhs_target, &rhs));
            plain(plan, [rhs.into_dispatch()])
        }
        _ => {
            let plan =
                accept(plan_binary::<L, R, O>(relation, op, [lhs_target, rhs_target], &lhs, &rhs));
            plain(plan, [lhs.into_dispatch(), rhs.into_dispatch()])
        }
    }
}

fn try_copy<const D: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    target: Target,
    x: Tensor<D>,
) -> Result<Tensor<O>, OpsError> {
    let x = enter(NAME, if op == SddmmOp::CopyLhs { "lhs" } else { "rhs" }, x)?;
    let plan = plan_copy::<D, O>(relation, op, target, &x)?;
    Ok(tensor(plan, [x.into_dispatch()]))
}

/// Feature shape of an operand that fits its target.
fn check_operand<const D: usize>(
    relation: &Relation,
    arg: &'static str,
    target: Target,
    x: &Tensor<D>,
) -> Result<Vec<usize>, OpsError> {
    let why = match target {
        Target::Src => "one per source node of the relation",
        Target::Dst => "one per destination node of the relation",
        Target::Edge => "one per edge of the relation",
    };
    check::check_operand(NAME, (arg, x), why, target.rows(relation))
}

fn plan_copy<const D: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    target: Target,
    x: &Tensor<D>,
) -> Result<GsddmmPlan, OpsError> {
    let arg = if op == SddmmOp::CopyLhs { "lhs" } else { "rhs" };
    let row = check_operand(relation, arg, target, x)?;
    plan(relation, op, [target; 2], [&row, &row], O)
}

fn plan_binary<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    targets: [Target; 2],
    lhs: &Tensor<L>,
    rhs: &Tensor<R>,
) -> Result<GsddmmPlan, OpsError> {
    let (l, r) = (
        check_operand(relation, "lhs", targets[0], lhs)?,
        check_operand(relation, "rhs", targets[1], rhs)?,
    );
    check_same(NAME, ("lhs", lhs), ("rhs", rhs))?;
    plan(relation, op, targets, [&l, &r], O)
}

fn plan(
    relation: &Relation,
    op: SddmmOp,
    targets: [Target; 2],
    features: [&[usize]; 2],
    rank: usize,
) -> Result<GsddmmPlan, OpsError> {
    let plan = GsddmmPlan::new(relation, op, targets, features)
        .map_err(|misfit| misfit.of(NAME, features[0], features[1]))?;
    let expected = plan.out().len() + 1;
    if rank == expected {
        Ok(plan)
    } else {
        Err(OpsError::Rank { op: NAME, expected, actual: rank })
    }
}
