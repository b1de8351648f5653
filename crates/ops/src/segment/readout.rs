//! Pools the nodes or edges of each graph of a batch.

use burn::tensor::Tensor;
use burn_gnn_graph::{Batch, EdgeKey, NodeKey};
use burn_gnn_plan::Segments;

use crate::check::accept;
use crate::error::OpsError;
use crate::segment::reduce::{SegmentReduce, try_segment_reduce};

/// Pools the features of a node type to one row per graph of a batch by sum, mean, maximum or minimum:
/// `out[k] = reduce of x[v]` over the nodes `v` of graph `k` (DGL: `readout_nodes`; PyG: `global_add_pool`,
/// `global_mean_pool`, `global_max_pool`).
///
/// # Shapes
/// `x` is `[nodes of the type in the batch, ..]` of any rank, the result `[graphs, ..]`.
///
/// # Semantics
/// As [`segment_reduce`](crate::segment_reduce): a graph without nodes of the type gets 0.
///
/// # Panics
/// With the text of the error that [`try_readout_nodes`] returns.
///
/// # Cost
/// As [`segment_reduce`](crate::segment_reduce), and `O(graphs)` for the segments. To share segments between calls,
/// build `Segments::from_lengths(batch.num_nodes(ntype)?)` and call `segment_reduce`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::{Graph, batch};
/// use burn_gnn_ops::{SegmentReduce, readout_nodes};
/// let graphs = [Graph::homogeneous(2, vec![0], vec![1])?, Graph::homogeneous(1, vec![], vec![])?];
/// let molecules = batch(&graphs)?;
/// let x = Tensor::<2>::from_data([[1.0, 2.0], [5.0, 4.0], [7.0, 7.0]], &Device::flex());
/// let y = readout_nodes(&molecules, .., x, SegmentReduce::Mean);
/// assert_eq!(y.into_data().try_to_vec::<f32>().unwrap(), [3.0, 3.0, 7.0, 7.0]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[doc(alias = "global_mean_pool")]
#[doc(alias = "global_add_pool")]
#[doc(alias = "global_max_pool")]
#[track_caller]
pub fn readout_nodes<const D: usize>(
    batch: &Batch,
    ntype: impl NodeKey,
    x: Tensor<D>,
    reduce: SegmentReduce,
) -> Tensor<D> {
    accept(try_readout_nodes(batch, ntype, x, reduce))
}

/// [`readout_nodes`] that returns an error instead of panicking.
///
/// # Errors
/// Unknown type; as [`try_segment_reduce`].
pub fn try_readout_nodes<const D: usize>(
    batch: &Batch,
    ntype: impl NodeKey,
    x: Tensor<D>,
    reduce: SegmentReduce,
) -> Result<Tensor<D>, OpsError> {
    try_segment_reduce(x, &Segments::try_from_lengths(batch.num_nodes(ntype)?)?, reduce)
}

/// [`readout_nodes`] for the edges of a type: `x` is `[edges of the type in the batch, ..]`.
///
/// # Panics
/// With the text of the error that [`try_readout_edges`] returns.
#[track_caller]
pub fn readout_edges<const D: usize>(
    batch: &Batch,
    etype: impl EdgeKey,
    x: Tensor<D>,
    reduce: SegmentReduce,
) -> Tensor<D> {
    accept(try_readout_edges(batch, etype, x, reduce))
}

/// [`readout_edges`] that returns an error instead of panicking.
///
/// # Errors
/// Unknown or ambiguous type; as [`try_segment_reduce`].
pub fn try_readout_edges<const D: usize>(
    batch: &Batch,
    etype: impl EdgeKey,
    x: Tensor<D>,
    reduce: SegmentReduce,
) -> Result<Tensor<D>, OpsError> {
    try_segment_reduce(x, &Segments::try_from_lengths(batch.num_edges(etype)?)?, reduce)
}
