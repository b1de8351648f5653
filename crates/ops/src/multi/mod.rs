//! Reduces messages over the edges of all relations into one node type.

mod concatenated;
mod cross_types;

pub(crate) use cross_types::beats;

pub use concatenated::{stack_rows, try_stack_rows};

use burn::tensor::Tensor;
use burn_gnn_graph::RelationStack;

use self::concatenated::Operands;
use crate::check::accept;
use crate::error::OpsError;
use crate::gspmm::general::try_gspmm_operands;
use burn_gnn_plan::{BinaryOp, Reduce};

/// Reducer of the results of relations at a destination: a [`Reduce`] over relations. Mean divides by the number of
/// relations, including relations without messages.
pub type CrossReduce = Reduce;

/// Reduces source features over the edges of all relations at once, `out[v] = reduce over r, (u, v) in r of x[u]`.
///
/// # Shapes
/// `sources[t]` is `[rows of table t, ..]`, all with one feature shape, element type and device; the result
/// `[num_dst, ..]`.
///
/// # Semantics, gradients, cost
/// As [`gspmm`](crate::gspmm) on the concatenated relation, whose edges are ordered by relation: mean divides by the
/// number of all edges into `v`, and of equal largest entries the one of the first relation is the argmax. Several
/// tables are concatenated first.
///
/// # Panics
/// With the text of the error that [`try_multi_gspmm`] returns.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::{Reduce, multi_gspmm};
/// let writes = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let cites = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let stack = RelationStack::new(1, &[2, 1], &[(0, writes), (1, cites)])?;
/// let (authors, papers) = (Tensor::<1>::from_data([1.0, 2.0], &Device::flex()), Tensor::from_data([6.0], &Device::flex()));
/// let y = multi_gspmm(&stack, vec![authors, papers], Reduce::Mean);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [3.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn multi_gspmm<const D: usize>(
    stack: &RelationStack,
    sources: Vec<Tensor<D>>,
    reduce: Reduce,
) -> Tensor<D> {
    accept(try_multi_gspmm(stack, sources, reduce))
}

/// [`multi_gspmm`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_stack_rows`] and [`try_gspmm_copy`](crate::try_gspmm_copy).
pub fn try_multi_gspmm<const D: usize>(
    stack: &RelationStack,
    sources: Vec<Tensor<D>>,
    reduce: Reduce,
) -> Result<Tensor<D>, OpsError> {
    let none = Vec::<Tensor<1>>::new();
    over_all("multi_gspmm", stack, BinaryOp::CopyLhs, sources, none, reduce)
}

/// Reduces source features inside every relation, then over relations:
/// `out[v] = cross over r of (reduce over (u, v) in r of x[u])`.
///
/// # Shapes
/// As [`multi_gspmm`].
///
/// # Semantics
/// A relation without messages into `v` contributes 0 to `cross`. If `reduce` and `cross` are both max or both min, it
/// contributes nothing, and `v` gets 0 only if no relation has a message. Mean over relations divides by their number.
/// f16 and bf16 are computed in f32 through both reductions and rounded once.
///
/// # Gradients
/// The gradients of both reductions. Under max and min over relations the first relation with the largest (smallest)
/// entry gets the gradient of this entry; a NaN is beyond every number.
///
/// # Cost
/// Sum or mean inside sum or mean, max inside max, and min inside min run as one reduction over the concatenated
/// relation. Other pairs, such as a maximum of sums, run one reduction per relation and combine each result with the
/// previous ones: they write and compare `relations · num_dst · features` entries where a single reduction writes
/// `num_dst · features`, and autodiff saves a mask per relation. For many relations with few edges choose a pair of the
/// first kind. Unless it is one reduction, f16 and bf16 inputs are copied to f32.
///
/// # Panics
/// With the text of the error that [`try_multi_gspmm_cross`] returns.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::{CrossReduce, Reduce, multi_gspmm_cross};
/// let writes = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let cites = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let stack = RelationStack::new(1, &[2, 1], &[(0, writes), (1, cites)])?;
/// let (authors, papers) = (Tensor::<1>::from_data([1.0, 2.0], &Device::flex()), Tensor::from_data([6.0], &Device::flex()));
/// let y = multi_gspmm_cross(&stack, vec![authors, papers], Reduce::Sum, CrossReduce::Max);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [6.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn multi_gspmm_cross<const D: usize>(
    stack: &RelationStack,
    sources: Vec<Tensor<D>>,
    reduce: Reduce,
    cross: CrossReduce,
) -> Tensor<D> {
    accept(try_multi_gspmm_cross(stack, sources, reduce, cross))
}

/// [`multi_gspmm_cross`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_stack_rows`] and [`try_gspmm_copy`](crate::try_gspmm_copy).
pub fn try_multi_gspmm_cross<const D: usize>(
    stack: &RelationStack,
    sources: Vec<Tensor<D>>,
    reduce: Reduce,
    cross: CrossReduce,
) -> Result<Tensor<D>, OpsError> {
    let operands =
        Operands::<D, 1>::new("multi_gspmm_cross", stack, BinaryOp::CopyLhs, sources, Vec::new())?;
    cross_types::cross(stack, BinaryOp::CopyLhs, operands, reduce, cross)
}

/// Reduces messages over the edges of all relations at once, as [`gspmm`](crate::gspmm) on a stack:
/// `out[v] = reduce over r, (u, v, e) in r of op(x[u], w[e])`.
///
/// # Shapes
/// - `sources[t]`: `[rows of table t, ..]`; `edges[r]`: `[edges of relation r, ..]` in edge-id order; each list with
///   one feature shape, both with one element type and device
/// - returns `[num_dst, ..]`; feature shapes broadcast as in [`gspmm`](crate::gspmm)
/// - A copy ignores the other list, which may be empty. With [`BinaryOp::CopyRhs`] messages are edge rows (`copy_e`).
///
/// # Semantics, gradients
/// As [`gspmm`](crate::gspmm) on the concatenated relation, whose edges are ordered by relation: mean divides by the
/// number of all edges into `v`, and of equal largest messages the one of the first relation is the argmax.
///
/// # Panics
/// With the text of the error that [`try_multi_gspmm_binary`] returns.
///
/// # Cost
/// As one [`gspmm`](crate::gspmm), and a copy of each list with several tensors to one tensor. If the rows are in one
/// tensor already, call `gspmm` on [`RelationStack::concatenated`].
///
/// # Source
/// `update_all` of DGL on a heterogeneous graph, with message functions such as `u_mul_e`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::{BinaryOp, Reduce, multi_gspmm_binary};
/// let writes = Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?;
/// let cites = Relation::from_coo(1, 1, vec![0], vec![0])?;
/// let stack = RelationStack::new(1, &[2, 1], &[(0, writes), (1, cites)])?;
/// let rows = |x: &[f32]| Tensor::<1>::from_data(x, &Device::flex());
/// let (sources, edges) = (vec![rows(&[1.0, 2.0]), rows(&[6.0])], vec![rows(&[1.0, 0.5]), rows(&[10.0])]);
/// let y: Tensor<1> = multi_gspmm_binary(&stack, BinaryOp::Mul, sources, edges, Reduce::Sum);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [62.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn multi_gspmm_binary<const L: usize, const R: usize, const O: usize>(
    stack: &RelationStack,
    op: BinaryOp,
    sources: Vec<Tensor<L>>,
    edges: Vec<Tensor<R>>,
    reduce: Reduce,
) -> Tensor<O> {
    accept(try_multi_gspmm_binary(stack, op, sources, edges, reduce))
}

/// [`multi_gspmm_binary`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_stack_rows`], for `sources` by table and for `edges` by relation; different element types or devices of
/// both; a stack without relations; as [`try_gspmm`](crate::try_gspmm).
pub fn try_multi_gspmm_binary<const L: usize, const R: usize, const O: usize>(
    stack: &RelationStack,
    op: BinaryOp,
    sources: Vec<Tensor<L>>,
    edges: Vec<Tensor<R>>,
    reduce: Reduce,
) -> Result<Tensor<O>, OpsError> {
    over_all("multi_gspmm_binary", stack, op, sources, edges, reduce)
}

fn over_all<const L: usize, const R: usize, const O: usize>(
    name: &'static str,
    stack: &RelationStack,
    op: BinaryOp,
    sources: Vec<Tensor<L>>,
    edges: Vec<Tensor<R>>,
    reduce: Reduce,
) -> Result<Tensor<O>, OpsError> {
    let (x, w) = Operands::new(name, stack, op, sources, edges)?.concatenated();
    try_gspmm_operands(stack.concatenated(), op, reduce, x, w)
}

/// Reduces messages inside every relation, then over relations:
/// `out[v] = cross over r of (reduce over (u, v, e) in r of op(x[u], w[e]))`.
///
/// # Shapes
/// As [`multi_gspmm_binary`].
///
/// # Semantics, gradients
/// As [`multi_gspmm_cross`].
///
/// # Panics
/// With the text of the error that [`try_multi_gspmm_binary_cross`] returns.
///
/// # Cost
/// As [`multi_gspmm_cross`], except that a mean inside a sum or a mean is one reduction per relation. Lists are copied
/// to one tensor only where there is a single reduction.
///
/// # Source
/// `multi_update_all` of DGL.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Relation, RelationStack};
/// use burn_gnn_ops::{BinaryOp, CrossReduce, Reduce, multi_gspmm_binary_cross};
/// let (writes, cites) = (Relation::from_coo(2, 1, vec![0, 1], vec![0, 0])?, Relation::from_coo(1, 1, vec![0], vec![0])?);
/// let stack = RelationStack::new(1, &[2, 1], &[(0, writes), (1, cites)])?;
/// let rows = |x: &[f32]| Tensor::<1>::from_data(x, &Device::flex());
/// // copy_e ignores sources.
/// let edges = vec![rows(&[1.0, 5.0]), rows(&[4.0])];
/// let y: Tensor<1> =
///     multi_gspmm_binary_cross::<1, 1, 1>(&stack, BinaryOp::CopyRhs, vec![], edges, Reduce::Mean, CrossReduce::Max);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [4.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[track_caller]
pub fn multi_gspmm_binary_cross<const L: usize, const R: usize, const O: usize>(
    stack: &RelationStack,
    op: BinaryOp,
    sources: Vec<Tensor<L>>,
    edges: Vec<Tensor<R>>,
    reduce: Reduce,
    cross: CrossReduce,
) -> Tensor<O> {
    accept(try_multi_gspmm_binary_cross(stack, op, sources, edges, reduce, cross))
}

/// [`multi_gspmm_binary_cross`] that returns an error instead of panicking.
///
/// # Errors
/// As [`try_multi_gspmm_binary`].
pub fn try_multi_gspmm_binary_cross<const L: usize, const R: usize, const O: usize>(
    stack: &RelationStack,
    op: BinaryOp,
    sources: Vec<Tensor<L>>,
    edges: Vec<Tensor<R>>,
    reduce: Reduce,
    cross: CrossReduce,
) -> Result<Tensor<O>, OpsError> {
    let operands = Operands::new("multi_gspmm_binary_cross", stack, op, sources, edges)?;
    cross_types::cross(stack, op, operands, reduce, cross)
}
