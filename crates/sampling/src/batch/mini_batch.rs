//! Defines `MiniBatch`: the blocks of all layers and the rows of the seeds.

use std::borrow::Cow;

use burn_gnn_graph::internal::ntype_number;
use burn_gnn_graph::{NodeKey, of_ntype};

use crate::batch::block::Block;
use crate::batch::sampled_batch::SampledBatch;
use crate::random::key::SampleKey;

/// A sampled batch: one [`Block`] per layer, and the rows of the seeds.
#[derive(Clone, Debug)]
pub struct MiniBatch {
    /// Blocks in the order of layers. The destinations of a block are the sources of the next one; the destinations of
    /// the last block are the seeds.
    pub blocks: Vec<Block>,
    /// Row of each seed among the destinations of the last block, per node type, in the order in which the seeds were
    /// given. Repeated seeds share a row; for distinct seeds the rows are `0, 1, 2, …`.
    pub seeds: Vec<Vec<u32>>,
    /// For disjoint trees: the position of the seed of each input node in the concatenated list of seeds, per node type.
    pub roots: Option<Vec<Vec<u32>>>,
}

impl MiniBatch {
    /// Nodes of a type whose features the first layer reads.
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn input_nodes(&self, ntype: impl NodeKey) -> &[u32] {
        match self.blocks.first() {
            Some(block) => block.src_nodes(ntype),
            None => &[],
        }
    }
    /// Nodes of a type that the last layer computes: the distinct seeds.
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn output_nodes(&self, ntype: impl NodeKey) -> &[u32] {
        match self.blocks.last() {
            Some(block) => block.dst_nodes(ntype),
            None => &[],
        }
    }
    /// Row of each seed of a type among the [`output_nodes`](Self::output_nodes), in the order in which the seeds were
    /// given: the rows of the loss.
    ///
    /// # Panics
    /// Unknown type.
    #[track_caller]
    pub fn seed_rows(&self, ntype: impl NodeKey) -> &[u32] {
        match self.blocks.last() {
            Some(block) => &of_ntype(&self.seeds, ntype_number(block.schema(), ntype))[..],
            None => &[],
        }
    }
    /// Sets the key of all blocks, by which layers key their dropout; see [`Block::key`].
    #[must_use]
    pub fn with_key(mut self, key: SampleKey) -> Self {
        self.blocks = self.blocks.into_iter().map(|block| block.with_key(key)).collect();
        self
    }
    /// Number of edges of all blocks, which is the number of messages. An edge that several hops sampled counts once per
    /// block.
    pub fn total_edges(&self) -> usize {
        self.blocks.iter().map(Block::total_edges).sum()
    }
}

impl SampledBatch for MiniBatch {
    type Id = u32;

    fn nodes(&self, ntype: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.input_nodes(ntype))
    }
    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }
    fn edges(&self, block: usize, etype: usize) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.blocks[block].edge_ids(etype))
    }
    fn num_edges(&self) -> usize {
        self.total_edges()
    }
    fn blocks(&self) -> &[Block] {
        &self.blocks
    }
    fn seed_rows(&self, ntype: usize) -> &[u32] {
        self.seeds.get(ntype).map_or(&[], |rows| rows)
    }
}
