//! A batch whose nodes are anywhere.

use burn_gnn_graph::MiniBatch;

/// A batch sampled over all parts.
///
/// [`mini`](Self::mini) is what models take. Its blocks number nodes by row of the batch; their
/// [`original_ids`](burn_gnn_graph::Block::original_ids), degrees and totals are those of the whole graph, so that layers compute what
/// they compute on one machine. Features are gathered by [`input_nodes`](Self::input_nodes).
#[derive(Clone, Debug)]
pub struct DistBatch {
    /// Blocks, and the row of each seed.
    pub mini: MiniBatch,
    /// Type-wise ids of all nodes, per node type.
    pub(crate) nodes: Vec<Vec<u64>>,
    /// Type-wise ids of edges, per block and edge type.
    pub(crate) edges: Vec<Vec<Vec<u64>>>,
}

impl DistBatch {
    /// Type-wise ids of the nodes whose features go into the first layer.
    pub fn input_nodes(&self, ntype: usize) -> &[u64] {
        &self.nodes[ntype]
    }
    /// Type-wise ids of the nodes that the last layer computes: the seeds, each once.
    pub fn output_nodes(&self, ntype: usize) -> &[u64] {
        let count = self.mini.blocks.last().map_or(self.nodes[ntype].len(), |b| b.dst_nodes(ntype).len());
        &self.nodes[ntype][..count]
    }
    /// Type-wise ids of the edges of a type in block `block`: rows of edge features.
    pub fn edge_ids(&self, block: usize, etype: usize) -> &[u64] {
        &self.edges[block][etype]
    }
    /// Edges of all blocks.
    pub fn total_edges(&self) -> usize {
        self.mini.total_edges()
    }
}
