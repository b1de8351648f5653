//! Adapts ShaDow sampling to loaders.

use crate::SampleKey;
use crate::neighbor::NeighborSampler;
use crate::{Sampler, SeedKind, Seeds};
use burn_gnn_graph::{GraphError, KHop};

/// [`NeighborSampler::shadow`] for loaders: for every seed a subgraph of its own, all in one graph. Where edges have
/// times, seeds have some too ([`Seeds::nodes_before`]), as under [`NeighborSampler::shadow_before`].
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{Loader, NeighborSampler, Seeds, ShadowSampler};
/// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?; // a path
/// let sampler = ShadowSampler::new(NeighborSampler::new(&g, [-1])?);
/// let batch = Loader::new(sampler, Seeds::nodes(&g, [("_N", [1, 2])])?, 2)?.epoch(0).next().expect("a batch")?;
/// assert_eq!(batch.batch.subgraph.graph.total_nodes(), 4); // each seed and its predecessor
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct ShadowSampler(NeighborSampler);

impl ShadowSampler {
    /// Of the trees that `sampler` draws.
    pub fn new(sampler: NeighborSampler) -> Self {
        Self(sampler)
    }
    /// What draws trees.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.0
    }
}

impl Sampler for ShadowSampler {
    type Seed = u32;
    type Batch = KHop;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<KHop, GraphError> {
        let nodes = self.0.graph().node_selection("seeds", seeds.ids().iter().enumerate())?;
        self.0.shadow_of(&nodes, seeds.times(), key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        seeds.expect(SeedKind::Nodes, self.0.graph().node_counts().len())?;
        if seeds.times().is_some() { self.0.check_timed() } else { self.0.check_untimed() }
    }
}
