//! Computes softmax over the edges of a node.

pub(crate) mod operator;
pub(crate) mod reference;
#[cfg(all(test, feature = "flex", feature = "ndarray"))]
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

/// Softmax over the edges that share an endpoint, `y[e] = exp(x[e]) / Σ exp(x[e'])` with `e'` from the edges of
/// `e`'s destination ([`NormBy::Dst`]) or source ([`NormBy::Src`]), for every feature entry on its own.
///
/// # Shapes
/// - `logits`: `[num_edges, ..]` of any rank, in edge-id order
/// - returns the same shape
///
/// # Semantics
/// - The largest logit of a node is subtracted first, so no exponential overflows.
/// - `-inf` is a mask: probability 0, gradient 0, also where all logits of a node are `-inf` (0 / 0 in other
///   frameworks): such a node is as one without edges. NaN and `+inf` make the probabilities of their node
///   and entry NaN: nothing is hidden.
/// - Parallel edges all count. A node without edges has no entry in the result.
/// - f16 and bf16 are computed in f32 and rounded once. Sums run in ascending edge id, in four partial sums
///   of a quarter of the edges each where unsorted logits take 16 MB and more: the same bits for any
///   number of threads.
///
/// # Gradients
/// `d x = y · (g - Σ y · g)`, summed over the edges of the same node. Only the result is kept. The gradient
/// itself is not differentiable and panics if asked.
///
/// # Panics
/// With the text of the error that [`try_edge_softmax`] returns.
///
/// # Cost
/// On CPU one pass over the nodes: every logit is read once into a buffer of the size of the node's logits,
/// every probability written once. Rows lie anywhere unless edges are sorted by the node they are
/// normalised over: a cache line is what each costs, 2 per edge of up to 16 f32 entries forward, 3 backward.
/// Unsorted logits of 16 MB and more, on up to 4 threads, run in edge order instead: 20 bytes per f32 entry in
/// streams, forward (logits read twice, probabilities written twice and read once) as backward (both inputs
/// read twice, the gradient written once), and 4 tables of one row per node that stay in the cache.
///
/// # Source
/// Edge softmax is that of graph attention networks (Veličković et al., 2018, arXiv:1710.10903).
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

/// [`edge_softmax`] that returns what is wrong with its arguments.
///
/// # Errors
/// A number of rows that is not the number of edges, rows of more than `u32::MAX` entries, or an element
/// type without a kernel.
pub fn try_edge_softmax<const D: usize>(
    relation: &Relation,
    logits: Tensor<D>,
    norm_by: NormBy,
) -> Result<Tensor<D>, OpsError> {
    let logits = enter(NAME, "logits", logits)?;
    let plan = plan(NAME, relation, &logits, norm_by, "one per edge of the relation")?;
    Ok(tensor(plan, [logits.into_dispatch()]))
}

/// [`edge_softmax`] over some edges only: row `i` of `logits` belongs to edge `eids[i]`; edges that are
/// not named take no part.
///
/// # Shapes
/// - `eids`: ids of different edges, in any order
/// - `logits`: `[eids.len(), ..]`
/// - returns the same shape, in the order of `eids`
///
/// # Semantics, gradients
/// Those of [`edge_softmax`] on a relation of the edges named, in their order.
///
/// # Panics
/// With the text of the error that [`try_edge_softmax_on`] returns.
///
/// # Cost
/// As [`edge_softmax`] for the edges named, and a sort of them by node; who uses one subset often builds
/// a [`Relation`] of its edges once.
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

/// [`edge_softmax_on`] that returns what is wrong with its arguments.
///
/// # Errors
/// As [`try_edge_softmax`], with one row per entry of `eids`; an id that is no edge's, an id given twice.
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
    let Ok(part) = part else { unreachable!("a part of the edges of a relation is one") };
    let plan = plan(ON, &part, &logits, norm_by, "one per entry of `eids`")?;
    Ok(tensor(plan, [logits.into_dispatch()]))
}

/// One softmax over the edges of several relations into one node type: an edge's probability is
/// its share among all edges into its destination, whatever their relation.
///
/// # Shapes
/// - `logits`: one tensor for each relation of the stack, `[num_edges of the relation, ..]`, with equal
///   feature shapes, element types and devices
/// - returns the probabilities in the same order and shapes
///
/// # Semantics, gradients
/// Those of [`edge_softmax`] over the in-edges of the stack's joint relation.
///
/// # Panics
/// With the text of the error that [`try_edge_softmax_across`] returns.
///
/// # Cost
/// As [`edge_softmax`] on the stack's [`concatenated`](RelationStack::concatenated) relation, and a copy of the logits
/// into one tensor and back. Who has the logits in one tensor calls `edge_softmax` on the joint relation.
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

/// [`edge_softmax_across`] that returns what is wrong with its arguments.
///
/// # Errors
/// A number of tensors that is not that of the relations, rows that are not a relation's edges, feature
/// shapes, element types or devices that differ, an element type without a kernel.
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

/// [`edge_softmax`] in plain tensor operations, on any backend, differentiated by Burn: slow, short, and
/// what the kernels are tested against.
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
