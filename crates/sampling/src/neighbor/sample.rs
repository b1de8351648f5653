//! Samples batches around seeds.

use std::sync::PoisonError;

use crate::batch::mini_batch::MiniBatch;
use crate::batch::seeds::Seeds;
use crate::neighbor::memory::Memory;
use crate::neighbor::sampler::NeighborSampler;
use crate::neighbor::trees::SeedTrees;
use crate::neighbor::trees::Trees;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{check_ids, check_len};
use burn_gnn_graph::{EdgeKey, GraphError, NodeKey};

/// Seeds per node type, and the time of each.
pub(crate) type SeedsWithTimes = (Vec<Vec<u32>>, Vec<Vec<i64>>);

impl NeighborSampler {
    /// Samples a batch around seeds, which are given per node type. Repeated seeds share a row.
    ///
    /// # Errors
    /// An unknown or repeated type; a seed out of range; edges have times, so that seeds need times
    /// ([`sample_before`](Self::sample_before)); edges in a file that cannot be read.
    pub fn sample<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let seeds = self.source.graph.node_selection("seeds", seeds)?;
        self.excluding(&seeds, None, vec![], key)
    }

    /// As [`sample`](Self::sample), but never draws the given edges (ids per edge type): for example the seed edges of
    /// link prediction, which would leak the label. Samples have the size that they have on a graph without these edges.
    ///
    /// # Errors
    /// As [`sample`](Self::sample), and an edge id out of range.
    pub fn sample_excluding<N: NodeKey, I: AsRef<[u32]>, K: EdgeKey, E: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        edges: impl IntoIterator<Item = (K, E)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let seeds = self.source.graph.node_selection("seeds", seeds)?;
        let edges = self.source.graph.edge_selection("edges", edges)?;
        self.excluding(&seeds, None, edges, key)
    }

    /// [`sample_excluding`](Self::sample_excluding) for validated ids in schema order. With times, each seed gets a
    /// separate tree of the edges strictly before its time.
    pub(crate) fn excluding(
        &self,
        seeds: &[Vec<u32>],
        times: Option<&[Vec<i64>]>,
        edges: Vec<Vec<u32>>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        if times.is_none() {
            self.check_untimed()?;
        }
        let trees =
            (self.disjoint || times.is_some()).then(|| Trees::new(&self.source, seeds, times));
        self.run(seeds, trees, &self.by_destination(edges)?, key)
    }

    /// Sorts excluded edges as `(destination, edge id)`, per edge type, so that a row finds its own by binary search.
    pub(crate) fn by_destination(
        &self,
        edges: Vec<Vec<u32>>,
    ) -> Result<Vec<Vec<(u32, u32)>>, GraphError> {
        let by_dst = |(t, ids): (usize, Vec<u32>)| {
            if ids.is_empty() {
                return Ok(vec![]);
            }
            let dst = self.source.graph.in_memory(t)?.dst();
            let mut pairs: Vec<(u32, u32)> =
                ids.into_iter().map(|e| (dst[e as usize], e)).collect();
            pairs.sort_unstable();
            Ok(pairs)
        };
        edges.into_iter().enumerate().map(by_dst).collect()
    }

    /// As [`sample`](Self::sample), but at every hop samples only edges strictly before the time of the seed (PyG
    /// includes edges at that time; see [`with_edges_at_seed_time`](Self::with_edges_at_seed_time)). Each seed gets a
    /// separate tree (see [`with_disjoint`](Self::with_disjoint)), also a repeated one, because each tree sees different
    /// edges. Later edges have no influence: the batch equals that of the graph without them, and
    /// [degrees](crate::Block#degrees) do not count them.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); a number of times other than that of seeds; no relation has times.
    pub fn sample_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let (seeds, times) = self.seeds_before(seeds)?;
        self.excluding(&seeds, Some(&times), vec![], key)
    }

    /// Validates seeds and their times, and brings them into schema order. Edges strictly before the returned times are
    /// visible.
    #[doc(hidden)]
    pub fn seeds_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
    ) -> Result<SeedsWithTimes, GraphError> {
        self.check_timed()?;
        let seeds = Seeds::nodes_before(&self.source.graph, seeds)?;
        let times = self.exclusive(seeds.times().unwrap_or_default());
        Ok((seeds.into_ids(), times))
    }

    /// Times before which edges are visible for seeds of these times.
    pub(crate) fn exclusive(&self, times: &[Vec<i64>]) -> Vec<Vec<i64>> {
        let of_type = |times: &Vec<i64>| times.iter().map(|&t| self.visible_before(t)).collect();
        times.iter().map(of_type).collect()
    }

    /// Samples around nodes that belong to trees of other ranks, over edges strictly before the times of the trees.
    ///
    /// # Errors
    /// As [`sample_excluding`](Self::sample_excluding); lists of different lengths.
    #[doc(hidden)]
    pub fn sample_in_trees(
        &self,
        seeds: &[Vec<u32>],
        trees: SeedTrees,
        excluded: &[Vec<u32>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let schema = self.source.graph.schema();
        check_len("seeds", "one list per node type", schema.ntypes().len(), seeds.len())?;
        check_len("trees", "one list per node type", seeds.len(), trees.of_seeds.len())?;
        let seeds = self.source.graph.node_selection("seeds", schema.ntypes().iter().zip(seeds))?;
        let edges = self.source.graph.edge_selection("edges", excluded.iter().enumerate())?;
        if trees.times.is_none() {
            self.check_untimed()?;
        }
        if let Some(times) = &trees.times {
            check_len("times", "one per tree", trees.root_ids.len(), times.len())?;
        }
        for ((ids, of), name) in seeds.iter().zip(&trees.of_seeds).zip(schema.ntypes()) {
            check_len("trees", "one per seed", ids.len(), of.len())
                .map_err(|e| e.in_relation(name))?;
            check_ids("trees", name, of, trees.root_ids.len())?;
        }
        self.run(&seeds, Some(trees.into()), &self.by_destination(edges)?, key)
    }

    pub(crate) fn run(
        &self,
        seeds: &[Vec<u32>],
        trees: Option<Trees>,
        excluded: &[Vec<(u32, u32)>],
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let pool = || self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pool().pop();
        let mut memory = known.unwrap_or_else(|| Memory::new(&self.source.graph));
        // Builds CSC before the workers start: concurrent first batches wait here for one build, instead of each
        // worker thread building it.
        for (t, relation) in self.source.graph.relations().iter().enumerate() {
            if self.fanouts[self.first..].iter().any(|hop| hop[t] > 0)
                && relation.stored().is_none()
            {
                relation.csc();
            }
        }
        // Enters the thread pool once per batch instead of once per parallel loop.
        let run = |memory: &mut Memory| self.grow(seeds, trees, excluded, key, memory);
        let batch =
            if self.is_parallel() { rayon::scope(|_| run(&mut memory)) } else { run(&mut memory) };
        pool().push(memory);
        batch
    }

    pub(crate) fn is_parallel(&self) -> bool {
        self.parallel && rayon::current_num_threads() > 1
    }
}
