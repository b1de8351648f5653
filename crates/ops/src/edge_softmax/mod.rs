//! Computes softmax over the edges of each node.

pub(crate) mod operator;
pub(crate) mod reference;
#[cfg(all(test, feature = "flex"))]
mod segment_tests;

pub use burn_gnn_plan::NormBy;
use burn_gnn_plan::SoftmaxPlan;

use burn::tensor::Tensor;
use burn_gnn_graph::{Relation, RelationStack};

use crate::check::{accept, check_distinct, check_edges, check_operand};
use crate::dense::precision::enter;
use crate::error::OpsError;
use crate::operator::{reference as plain, tensor};

const NAME: &str = "edge_softmax";
const ON: &str = "edge_softmax_on";
const ACROSS: &str = "edge_softmax_across";

/// Softmax over the edges that share an endpoint, per feature entry: `y[e] = exp(x[e]) / Σ exp(x[e'])`, where `e'` runs
/// over the edges with the destination ([`NormBy::Dst`]) or the source ([`NormBy::Src`]) of `e`.
///
/// # Shapes
/// - `logits`: `[num_edges, ..]` of any rank, in edge-id order
/// - returns the same shape
///
/// # Semantics
/// - The largest logit of a node is subtracted first, so no exponential overflows.
/// - `-inf` is a mask, with probability 0 and gradient 0. A node with logits of `-inf` only has probabilities of 0
///   (0 / 0 in other frameworks). A NaN or `+inf` makes the probabilities of its node and feature entry NaN.
/// - Parallel edges all count. A node without edges has no entry in the result.
/// - f16 and bf16 are computed in f32 and rounded once. Sums run in ascending edge id, so results are the same bits for
///   any number of threads.
///
/// # Gradients
/// `d x = y · (g - Σ y · g)`, with a sum over the edges of the same node. Only the result is saved. Second-order
/// gradients are not implemented and panic.
///
/// # Panics
/// With the text of the error that [`try_edge_softmax`] returns.
///
/// # Cost
/// On CPUs one pass over the nodes: every logit is read once into a buffer for the edges of the node, and every
/// probability is written once. If edges are not sorted by the node that they are normalised over, their rows are
/// scattered in memory, and each access moves a cache line: 2 per edge of up to 16 f32 entries forward, 3 backward.
///
/// # Source
/// Edge softmax was introduced by graph attention networks (Veličković et al., 2018, arXiv:1710.10903).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{NormBy, edge_softmax};
/// let rel = Relation::from_coo(2, 3, vec![0, 1, 1], vec![0, 0, 2])?;
/// let x = Tensor::<1>::from_data([4.0, 4.0, -7.0], &Device::flex());
/// let y = edge_softmax(&rel, x, NormBy::Dst);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5, 1.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn edge_softmax<const D: usize>(
    relation: &Relation,
    logits: Tensor<D>,
    norm_by: NormBy,
) -> Tensor<D> {
    accept(try_edge_softmax(relation, logits, norm_by))
}

/// [`edge_softmax`] that returns an error instead of panicking.
///
/// # Errors
/// A number of rows that is not the number of edges; rows of more than `u32::MAX` entries; an element type without a
/// kernel.
pub fn try_edge_softmax<const D: usize>(
    relation: &Relation,
    logits: Tensor<D>,
    norm_by: NormBy,
) -> Result<Tensor<D>, OpsError> {
    let logits = enter(NAME, "logits", logits)?;
    let plan = plan(NAME, relation, &logits, norm_by, "one per edge of the relation")?;
    Ok(tensor(plan, [logits.into_dispatch()]))
}

/// [`edge_softmax`] over a subset of the edges: row `i` of `logits` belongs to edge `eids[i]`.
///
/// # Shapes
/// - `eids`: distinct edge ids, in any order
/// - `logits`: `[eids.len(), ..]`
/// - returns the same shape, in the order of `eids`
///
/// # Semantics, gradients
/// As [`edge_softmax`] on a relation of the edges `eids`, in this order.
///
/// # Panics
/// With the text of the error that [`try_edge_softmax_on`] returns.
///
/// # Cost
/// As [`edge_softmax`] for these edges, and sorting them by node. Build a [`Relation`] of a subset that is used several
/// times.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Relation;
/// use burn_gnn_ops::{NormBy, edge_softmax_on};
/// let rel = Relation::from_coo(3, 1, vec![0, 1, 2], vec![0, 0, 0])?;
/// let x = Tensor::<1>::from_data([4.0, 4.0], &Device::flex());
/// let y = edge_softmax_on(&rel, &[2, 0], x, NormBy::Dst);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn edge_softmax_on<const D: usize>(
    relation: &Relation,
    eids: &[u32],
    logits: Tensor<D>,
    norm_by: NormBy,
) -> Tensor<D> {
    accept(try_edge_softmax_on(relation, eids, logits, norm_by))
}

/// [`edge_softmax_on`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_edge_softmax`], with one row per entry of `eids`; an id that is out of range or repeated.
pub fn try_edge_softmax_on<const D: usize>(
    relation: &Relation,
    eids: &[u32],
    logits: Tensor<D>,
    norm_by: NormBy,
) -> Result<Tensor<D>, OpsError> {
    let logits = enter(ON, "logits", logits)?;
    let repeated = |position, first, id| OpsError::EdgeRepeated { op: ON, position, first, id };
    let bound = relation.num_edges();
    check_distinct(ON, ("eids", eids), "edges of the relation", bound, repeated)?;
    let end = |endpoints: &[u32]| eids.iter().map(|&id| endpoints[id as usize]).collect();
    let part = Relation::from_coo(
        relation.num_src(),
        relation.num_dst(),
        end(relation.src()),
        end(relation.dst()),
    );
    let Ok(part) = part else { unreachable!("a subset of the edges of a relation is valid") };
    let plan = plan(ON, &part, &logits, norm_by, "one per entry of `eids`")?;
    Ok(tensor(plan, [logits.into_dispatch()]))
}

/// Softmax over the in-edges of several relations together: the probabilities of all edges into a destination sum to 1,
/// across relations.
///
/// # Shapes
/// - `logits`: one tensor for each relation of the stack, `[num_edges of the relation, ..]`, with equal
///   feature shapes, element types and devices
/// - returns the probabilities in the same order and shapes
///
/// # Semantics, gradients
/// As [`edge_softmax`] on the concatenated relation of the stack.
///
/// # Panics
/// With the text of the error that [`try_edge_softmax_across`] returns.
///
/// # Cost
/// As [`edge_softmax`] on the [`concatenated`](RelationStack::concatenated) relation, and copies of the logits to one
/// tensor and back. If the logits are in one tensor already, call `edge_softmax` on that relation.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::edge_softmax_across;
/// let writes = Relation::from_coo(2, 2, vec![0, 1], vec![0, 1])?;
/// let cites = Relation::from_coo(2, 2, vec![1], vec![0])?;
/// let stack = RelationStack::new(2, &[2, 2], &[(0, writes), (1, cites)])?;
/// let x = |values: Vec<f32>| Tensor::<1>::from_data(values.as_slice(), &Device::flex());
/// let y = edge_softmax_across(&stack, vec![x(vec![4.0, 9.0]), x(vec![4.0])]);
/// assert_eq!(y[0].to_data().try_to_vec::<f32>().unwrap(), [0.5, 1.0]);
/// assert_eq!(y[1].to_data().try_to_vec::<f32>().unwrap(), [0.5]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn edge_softmax_across<const D: usize>(
    stack: &RelationStack,
    logits: Vec<Tensor<D>>,
) -> Vec<Tensor<D>> {
    accept(try_edge_softmax_across(stack, logits))
}

/// [`edge_softmax_across`] that returns an error instead of panicking.
///
/// # Errors
/// Not one tensor per relation; a tensor without one row per edge of its relation; different feature shapes, element
/// types or devices; an element type without a kernel.
pub fn try_edge_softmax_across<const D: usize>(
    stack: &RelationStack,
    logits: Vec<Tensor<D>>,
) -> Result<Vec<Tensor<D>>, OpsError> {
    let logits =
        logits.into_iter().map(|x| enter(ACROSS, "logits", x)).collect::<Result<Vec<_>, _>>()?;
    check_edges(ACROSS, "logits", &logits, stack)?;
    if logits.is_empty() {
        return Ok(logits);
    }
    let joint = Tensor::cat(logits, 0);
    let plan = plan(
        ACROSS,
        stack.concatenated(),
        &joint,
        NormBy::Dst,
        "one per edge of the joint relation",
    )?;
    let y: Tensor<D> = tensor(plan, [joint.into_dispatch()]);
    Ok((0..stack.len()).map(|r| y.clone().slice_dim(0, stack.edge_range(r))).collect())
}

/// [`edge_softmax`] in plain tensor operations, on any backend, differentiated by Burn: the slow and short reference
/// for tests of the kernels.
///
/// # Panics
/// As [`edge_softmax`].
#[track_caller]
pub fn edge_softmax_reference<const D: usize>(
    relation: &Relation,
    logits: Tensor<D>,
    norm_by: NormBy,
) -> Tensor<D> {
    let plan = accept(plan(NAME, relation, &logits, norm_by, "one per edge of the relation"));
    plain(plan, [logits.into_dispatch()])
}

fn plan<const D: usize>(
    op: &'static str,
    relation: &Relation,
    logits: &Tensor<D>,
    norm_by: NormBy,
    why: &'static str,
) -> Result<SoftmaxPlan, OpsError> {
    let features = check_operand(op, ("logits", logits), why, relation.num_edges())?;
    Ok(SoftmaxPlan::edges(op, relation, norm_by, &features)?)
}
