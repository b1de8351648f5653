//! Defines the general form of GSDDMM.

use burn::tensor::Tensor;
use burn_gnn_graph::Relation;
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Target};

use crate::check::{accept, check_operands, check_rank};
use crate::dense::precision::enter_if;
use crate::error::OpsError;
use crate::operator::{operands, reference as plain, tensor};

const NAME: &str = "gsddmm";

/// One result per edge `e = (u, v)` from two operand rows, `out[e] = op(lhs[i], rhs[j])` (GSDDMM).
///
/// `i` and `j` are the targets of the operands: `u` (the source of the edge), `v` (its destination) or `e` (the edge
/// itself), in any combination. Common cases have names: [`u_add_v`](crate::u_add_v), [`u_dot_v`](crate::u_dot_v),
/// [`e_div_v`](crate::e_div_v), [`copy_u`](crate::copy_u).
///
/// # Shapes
/// - `lhs`, `rhs`: `[num_src, ..]`, `[num_dst, ..]` or `[num_edges, ..]`, as the target says
/// - returns `[num_edges, ..]` in edge-id order; feature shapes (all but the first axis) broadcast as in
///   NumPy: aligned at the end, equal or 1, a missing axis counts as 1
/// - [`Dot`](SddmmOp::Dot) broadcasts as a product does, then sums the last axis and keeps it with size 1.
///   Two 1-D operands have no such axis; their dot is their product.
/// - A copy ignores the other operand and its shape; the result has the feature shape of the copied operand.
///   [`gsddmm_copy`] takes a single operand.
///
/// # Semantics
/// - Edges are independent of each other: parallel edges have equal results if their operands are equal,
///   nodes without edges are never read.
/// - f16 and bf16 are computed in f32 and rounded once. Results are the same bits for any number of threads: a dot
///   product is summed in 16 fixed partial sums, gradients of nodes in ascending edge id.
/// - Infinities and NaN propagate; `x / 0` is infinite.
///
/// # Gradients
/// The gradient of an operand on nodes is a sum over the edges of the node, by CSR for `u` and by CSC for `v`; a node
/// without edges gets 0. Where no axis is summed it runs as a GSpMM (for `u_dot_v` it is `u_mul_e_sum` on the relation,
/// reversed for `u`), without a tensor of size edges × features. The gradient of an operand on edges has one row per
/// edge. Broadcast axes are summed. A gradient of 0 is 0, never -0.
///
/// Saved for backward: nothing for add, sub and copies; the other operand for mul and dot; for div `rhs` if `lhs` is
/// tracked, both if `rhs` is tracked. Second-order gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_gsddmm`] returns.
///
/// # Cost
/// Two operand rows are read and one result row is written per edge, without a temporary. Edges are processed in id
/// order with prefetched rows. A dot product of two endpoints with rows of 64 bytes and more is processed in CSC order,
/// so that the row of a destination is read once: `num_edges · D · 4` bytes for sources and `num_dst · D · 4` for
/// destinations.
///
/// # Source
/// The name and the set of operators are DGL's (Wang et al., 2019, arXiv:1909.01315).
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

/// [`gsddmm`] that returns an error instead of panicking.
///
/// # Errors
/// Wrong numbers of rows; feature shapes that do not broadcast or whose rows have more than `u32::MAX` entries; an
/// output type whose rank is not the rank of the result; different element types or devices; an element type without a
/// kernel.
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

/// [`gsddmm`] of a single operand: the row of the source, of the destination or of the edge, for every edge.
///
/// # Shapes
/// - `x`: `[num_src, ..]`, `[num_dst, ..]` or `[num_edges, ..]`, by `target`
/// - returns `[num_edges, ..]` in edge-id order
///
/// # Gradients
/// The gradient of a node's row is the sum over its edges, in ascending edge id; 0 without edges. Nothing is saved.
///
/// # Cost
/// One row is read and one row is written per edge.
///
/// # Panics
/// With the text of the error that [`try_gsddmm_copy`] returns.
#[track_caller]
pub fn gsddmm_copy<const D: usize>(relation: &Relation, target: Target, x: Tensor<D>) -> Tensor<D> {
    accept(try_gsddmm_copy(relation, target, x))
}

/// [`gsddmm_copy`] that returns an error instead of panicking.
///
/// # Errors
/// A wrong number of rows; rows of more than `u32::MAX` entries; an element type without a kernel.
pub fn try_gsddmm_copy<const D: usize>(
    relation: &Relation,
    target: Target,
    x: Tensor<D>,
) -> Result<Tensor<D>, OpsError> {
    run(relation, SddmmOp::CopyLhs, [target; 2], Some(x), None::<Tensor<D>>)
}

/// [`gsddmm`] in plain tensor operations, on any backend, differentiated by Burn: the slow and short reference for
/// tests of the kernels.
///
/// # Panics
/// As [`gsddmm`].
///
/// # Cost
/// It stores both operand rows of every edge.
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

/// [`try_gsddmm`] with only the operands that the operator reads.
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
