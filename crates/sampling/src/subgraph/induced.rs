//! Samples the subgraph induced by a sampled neighbourhood.

use crate::batch::mini_batch::MiniBatch;
use crate::neighbor::sampler::NeighborSampler;
use crate::neighbor::trees::Trees;
use crate::random::key::SampleKey;
use burn_gnn_graph::{EdgeKey, GraphError, KHop, NodeKey, OriginalIds, Relabel};

impl NeighborSampler {
    /// Samples a neighbourhood and returns the subgraph induced by its nodes, seeds first, with the position of each seed
    /// (GLT's `SubGraphLoader`, SEAL). `dropped` edges (ids per edge type) are neither sampled nor part of the subgraph:
    /// for example test pairs and their reverses, which would leak the label.
    ///
    /// # Errors
    /// As [`sample_excluding`](Self::sample_excluding); edges have times, so that the seeds need a time
    /// ([`induced_before`](Self::induced_before)).
    ///
    /// # Cost
    /// As [`Graph::node_subgraph`](burn_gnn_graph::Graph::node_subgraph).
    pub fn induced<N: NodeKey, I: AsRef<[u32]>, K: EdgeKey, E: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        dropped: impl IntoIterator<Item = (K, E)>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        self.check_untimed()?;
        self.induced_at(seeds, None, dropped, key)
    }

    /// As [`induced`](Self::induced), but with only the edges strictly before `time`. All seeds share one subgraph and one
    /// time. For seeds with different times use [`shadow_before`](Self::shadow_before), which makes a subgraph per seed.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(3, vec![0, 1, 0], vec![1, 2, 2])?;
    /// let sampler = NeighborSampler::new(&g, [-1, -1])?.with_times("_E", &[10, 20, 30])?;
    /// let none: [(&str, &[u32]); 0] = [];
    /// let k = sampler.induced_before([("_N", [2])], 30, none, SampleKey::new(0))?;
    /// assert_eq!(k.subgraph.original_edges("_E")?.to_vec(), [0, 1]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample_excluding`](Self::sample_excluding); no relation has times.
    ///
    /// # Cost
    /// As [`induced`](Self::induced).
    pub fn induced_before<N: NodeKey, I: AsRef<[u32]>, K: EdgeKey, E: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        time: i64,
        dropped: impl IntoIterator<Item = (K, E)>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        self.check_timed()?;
        self.induced_at(seeds, Some(time), dropped, key)
    }

    fn induced_at<N: NodeKey, I: AsRef<[u32]>, K: EdgeKey, E: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        time: Option<i64>,
        dropped: impl IntoIterator<Item = (K, E)>,
        key: SampleKey,
    ) -> Result<KHop, GraphError> {
        let g = self.graph();
        let seeds = g.node_selection("seeds", seeds)?;
        let mut dropped = g.edge_selection("dropped", dropped)?;
        let time = time.map(|time| self.visible_before(time));
        let trees = time.map(|time| Trees::one(&seeds, time));
        let batch = self.run(&seeds, trees, &self.by_destination(dropped.clone())?, key)?;
        let nodes = (0..g.node_counts().len()).map(|t| found(&batch, &seeds, t).to_vec());
        dropped.iter_mut().for_each(|ids| ids.sort_unstable());
        let mut subgraph = g.induced(nodes.collect(), Relabel::Yes)?;
        if time.is_some() || dropped.iter().any(|ids| !ids.is_empty()) {
            let node_ids = subgraph.node_ids.clone();
            let edge_times = |t| if time.is_some() { self.edge_times(t) } else { Ok(None) };
            let edge_times: Vec<_> =
                (0..g.relations().len()).map(edge_times).collect::<Result<_, _>>()?;
            let kept = |(t, (ids, dropped)): (usize, (&OriginalIds, &Vec<u32>))| {
                let before = time.zip(edge_times[t]);
                let is_kept = |e: &u32| {
                    dropped.binary_search(e).is_err()
                        && before.is_none_or(|(time, of)| of[*e as usize] < time)
                };
                ids.iter().filter(is_kept).collect()
            };
            let edge_ids = g.edges_at(subgraph.edge_ids.iter().zip(&dropped).enumerate().map(kept));
            subgraph = g.restrict(node_ids, edge_ids)?;
        }
        Ok(KHop { subgraph, seeds: batch.seeds })
    }
}

/// All nodes of a type in a batch around `seeds`; the seeds themselves for a sampler without hops.
pub(super) fn found<'a>(batch: &'a MiniBatch, seeds: &'a [Vec<u32>], t: usize) -> &'a [u32] {
    batch.blocks.first().map_or(&seeds[t], |block| block.src_nodes(t))
}
