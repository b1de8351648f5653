//! Defines `SampledBatch`: the ids whose features a loader reads with a batch.

use std::borrow::Cow;

use burn_gnn_graph::{KHop, OriginalIds, Subgraph};

use crate::batch::block::Block;

/// The ids of the nodes and edges whose features a loader reads with a batch. The defaults are for batches without
/// features.
pub trait SampledBatch: Send + 'static {
    /// Type of ids: `u32` in memory, `u64` on partitioned graphs.
    type Id: Copy + Send + Sync + 'static;

    /// Nodes of a type whose features the network reads, one row per node.
    fn nodes(&self, _ntype: usize) -> Cow<'_, [Self::Id]> {
        Cow::Borrowed(&[])
    }
    /// Number of blocks, each with a list of edges.
    fn num_blocks(&self) -> usize {
        0
    }
    /// Edges of a type in block `block`.
    fn edges(&self, _block: usize, _etype: usize) -> Cow<'_, [Self::Id]> {
        Cow::Borrowed(&[])
    }
    /// Number of edges of all blocks, for throughput.
    fn num_edges(&self) -> usize {
        0
    }
    /// The blocks, where the batch consists of some: what layers run on.
    fn blocks(&self) -> &[Block] {
        &[]
    }
    /// Row of each seed of a node type among the nodes that the last block computes.
    fn seed_rows(&self, _ntype: usize) -> &[u32] {
        &[]
    }
}

/// Implements `SampledBatch` by forwarding to a field.
macro_rules! of_field {
    ($($batch:ty: $field:ident as $inner:ty $(, $b:ident, $t:ident)?;)*) => {$(
        impl$(<$b: SampledBatch, $t: Send + 'static>)? SampledBatch for $batch {
            type Id = <$inner as SampledBatch>::Id;

            fn nodes(&self, ntype: usize) -> Cow<'_, [Self::Id]> {
                self.$field.nodes(ntype)
            }
            fn num_blocks(&self) -> usize {
                self.$field.num_blocks()
            }
            fn edges(&self, block: usize, etype: usize) -> Cow<'_, [Self::Id]> {
                self.$field.edges(block, etype)
            }
            fn num_edges(&self) -> usize {
                self.$field.num_edges()
            }
            fn blocks(&self) -> &[$crate::batch::block::Block] {
                self.$field.blocks()
            }
            fn seed_rows(&self, ntype: usize) -> &[u32] {
                self.$field.seed_rows(ntype)
            }
        }
    )*};
}
pub(crate) use of_field;

of_field! {
    KHop: subgraph as Subgraph;
}

/// A subgraph counts as one block with all its nodes and edges.
impl SampledBatch for Subgraph {
    type Id = u32;

    fn nodes(&self, ntype: usize) -> Cow<'_, [u32]> {
        ids(&self.node_ids[ntype])
    }
    fn num_blocks(&self) -> usize {
        1
    }
    fn edges(&self, _: usize, etype: usize) -> Cow<'_, [u32]> {
        ids(&self.edge_ids[etype])
    }
    fn num_edges(&self) -> usize {
        self.graph.total_edges()
    }
}

fn ids(of: &OriginalIds) -> Cow<'_, [u32]> {
    of.as_slice().map_or_else(|| Cow::Owned(of.to_vec()), Cow::Borrowed)
}
