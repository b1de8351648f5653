//! A batch with nodes of all ranks.

use std::borrow::Cow;
use std::sync::Arc;

use burn_gnn_graph::{EdgeKey, NodeKey, Schema, of_etype, of_ntype};
use burn_gnn_sampling::{Block, MiniBatch, SampledBatch};

use crate::partition_book::{etype_number, ntype_number};

/// A batch sampled over all parts.
///
/// Models take [`mini`](Self::mini). Its blocks number nodes by row of the batch. Their
/// [`original_ids`](burn_gnn_sampling::Block::original_ids), degrees and totals are those of the whole graph, so layers
/// compute the same values as on one machine. Gather features for [`input_nodes`](Self::input_nodes).
#[derive(Clone, Debug)]
pub struct DistBatch {
    /// Blocks, and the row of each seed.
    pub mini: MiniBatch,
    pub(crate) schema: Arc<Schema>,
    /// Type-wise ids of all nodes, per node type.
    pub(crate) nodes: Vec<Vec<u64>>,
    /// Type-wise ids of edges, per block and edge type.
    pub(crate) edges: Vec<Vec<Vec<u64>>>,
}

impl DistBatch {
    /// Type-wise ids of the nodes of a type whose features go into the first layer.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn input_nodes(&self, ntype: impl NodeKey) -> &[u64] {
        let ntype = ntype_number(&self.schema, ntype);
        &of_ntype(&self.nodes, ntype)[..]
    }
    /// Type-wise ids of the nodes of a type that the last layer computes: the distinct seeds.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn output_nodes(&self, ntype: impl NodeKey) -> &[u64] {
        let ntype = ntype_number(&self.schema, ntype);
        let nodes = of_ntype(&self.nodes, ntype);
        &nodes[..self.mini.blocks.last().map_or(nodes.len(), |b| b.dst_nodes(ntype).len())]
    }
    /// Row of each seed of a type among the [`output_nodes`](Self::output_nodes), in the order of the seeds: the rows
    /// of the loss.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn seed_rows(&self, ntype: impl NodeKey) -> &[u32] {
        &of_ntype(&self.mini.seeds, ntype_number(&self.schema, ntype))[..]
    }
    /// Type-wise ids of the edges of a type in block `block`, to gather edge features.
    ///
    /// # Panics
    /// There is no such block or type.
    #[track_caller]
    pub fn edge_ids(&self, block: usize, etype: impl EdgeKey) -> &[u64] {
        let etype = etype_number(&self.schema, etype);
        let Some(edges) = self.edges.get(block) else {
            panic!("`block` must lie in 0..{} (blocks of the batch), got {block}", self.edges.len())
        };
        &of_etype(edges, etype)[..]
    }
    /// Number of edges in all blocks.
    pub fn total_edges(&self) -> usize {
        self.mini.total_edges()
    }
}

impl SampledBatch for DistBatch {
    type Id = u64;

    fn nodes(&self, ntype: usize) -> Cow<'_, [u64]> {
        Cow::Borrowed(self.input_nodes(ntype))
    }
    fn num_blocks(&self) -> usize {
        self.mini.blocks.len()
    }
    fn edges(&self, block: usize, etype: usize) -> Cow<'_, [u64]> {
        Cow::Borrowed(self.edge_ids(block, etype))
    }
    fn num_edges(&self) -> usize {
        self.total_edges()
    }
    fn blocks(&self) -> &[Block] {
        &self.mini.blocks
    }
    fn seed_rows(&self, ntype: usize) -> &[u32] {
        self.mini.seeds.get(ntype).map_or(&[], |rows| rows)
    }
}
