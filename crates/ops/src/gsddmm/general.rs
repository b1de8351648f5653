//! Defines the general form of GSDDMM.

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Target};

use crate::check::{accept, check_operands, check_rank};
use crate::dense::precision::enter_if;
use crate::error::OpsError;
use crate::operator::{operands, reference as plain, tensor};

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
    let (lhs, rhs) = (op.uses_lhs().then_some(lhs), op.uses_rhs().then_some(rhs));
    run(relation, op, [lhs_target, rhs_target], lhs, rhs)
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
    run(relation, SddmmOp::CopyLhs, [target; 2], Some(x), None::<Tensor<D>>)
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
    let (targets, lhs, rhs) =
        ([lhs_target, rhs_target], op.uses_lhs().then_some(lhs), op.uses_rhs().then_some(rhs));
    let plan = accept(plan::<L, R, O>(relation, op, targets, lhs.as_ref(), rhs.as_ref()));
    plain(plan, operands(lhs, rhs))
}

/// The call on the operands that it reads.
fn run<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    targets: [Target; 2],
    lhs: Option<Tensor<L>>,
    rhs: Option<Tensor<R>>,
) -> Result<Tensor<O>, OpsError> {
    let (lhs, rhs) = (enter_if(NAME, "lhs", lhs)?, enter_if(NAME, "rhs", rhs)?);
    let plan = plan::<L, R, O>(relation, op, targets, lhs.as_ref(), rhs.as_ref())?;
    Ok(tensor(plan, operands(lhs, rhs)))
}

fn plan<const L: usize, const R: usize, const O: usize>(
    relation: &Relation,
    op: SddmmOp,
    targets: [Target; 2],
    lhs: Option<&Tensor<L>>,
    rhs: Option<&Tensor<R>>,
) -> Result<GsddmmPlan, OpsError> {
    let [l, r] = check_operands(NAME, relation, targets, lhs, rhs)?;
    // A copy has one target.
    let targets = match op {
        SddmmOp::CopyLhs => [targets[0]; 2],
        SddmmOp::CopyRhs => [targets[1]; 2],
        _ => targets,
    };
    let plan = GsddmmPlan::new(relation, op, targets, [&l, &r])
        .map_err(|misfit| misfit.of(NAME, &l, &r))?;
    check_rank(NAME, plan.out(), O)?;
    Ok(plan)
}
