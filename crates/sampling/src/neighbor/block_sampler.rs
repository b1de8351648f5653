//! Defines `BlockSampler`, the interface of samplers that make blocks, on the CPU or on a GPU.

use crate::batch::mini_batch::MiniBatch;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::neighbor::sampler::NeighborSampler;
use crate::random::key::SampleKey;
use burn_gnn_graph::GraphError;

/// Makes blocks around seeds: [`NeighborSampler`] on the CPU, or a sampler on a GPU. Every `BlockSampler` is a [`Sampler`]
/// of nodes, and a [`LinkSampler`](crate::LinkSampler) uses it to make blocks.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{BlockSampler, NeighborSampler, SampleKey};
/// let g = Graph::homogeneous(4, vec![1, 2, 3], vec![0, 0, 1])?;
/// let sampler = NeighborSampler::new(&g, [2, 2])?;
/// let batch = sampler.blocks_excluding(&[vec![0]], None, &[vec![1]], SampleKey::new(7))?; // never edge 1, 2 -> 0
/// assert_eq!(batch.blocks[0].src_nodes("_N"), [0, 1, 3]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
pub trait BlockSampler: std::fmt::Debug + Send + Sync {
    /// The CPU sampler that makes the same batches; the sampler itself on the CPU.
    fn on_host(&self) -> &NeighborSampler;

    /// Samples blocks around seeds, given per node type in schema order, as a function of the arguments. If edges have
    /// times, `times` holds the time of each seed, in the shape of `seeds`.
    ///
    /// # Errors
    /// A seed out of range; lists of different lengths; seeds with times if edges have none, or without if edges have
    /// times.
    fn blocks(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        self.blocks_excluding(seeds, times, &[], key)
    }

    /// As [`blocks`](Self::blocks), but never draws the excluded edges, given by id per edge type in schema order. An empty
    /// slice excludes nothing.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks); an edge out of range.
    fn blocks_excluding(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError>;
}

impl BlockSampler for NeighborSampler {
    fn on_host(&self) -> &NeighborSampler {
        self
    }
    fn blocks_excluding(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let (seeds, times, excluded) = self.batch_request(seeds, times, excluded)?;
        self.excluding(&seeds, times.as_deref(), excluded, key)
    }
}

/// Batches of nodes of one or several types. Seeds need times exactly if edges have times.
impl<B: BlockSampler + 'static> Sampler for B {
    type Seed = u32;
    type Batch = MiniBatch;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<MiniBatch, GraphError> {
        self.blocks(seeds.ids(), seeds.times(), key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        let host = self.on_host();
        seeds.expect(SeedKind::Nodes, host.graph().node_counts().len())?;
        if seeds.times().is_some() { host.check_timed() } else { host.check_untimed() }
    }
}
