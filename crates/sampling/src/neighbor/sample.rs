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
    /// A batch around seeds, given per node type; seeds given twice share a row.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range; edges have times, so seeds need some
    /// ([`sample_before`](Self::sample_before)).
    pub fn sample<N: NodeKey, I: AsRef<[u32]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let seeds = self.source.graph.node_selection("seeds", seeds)?;
        self.excluding(&seeds, None, vec![], key)
    }

    /// As [`sample`](Self::sample), without ever drawing some edges, given by id per edge type: seed edges of link
    /// prediction, for example, whose presence would give the answer away. Samples are as large as if the edges were
    /// not there.
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

    /// [`sample_excluding`](Self::sample_excluding) of checked ids, in schema order; with times in disjoint trees
    /// before them.
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

    /// `(destination, edge id)` of edges, ascending, per edge type.
    pub(crate) fn by_destination(
        &self,
        edges: Vec<Vec<u32>>,
    ) -> Result<Vec<Vec<(u32, u32)>>, GraphError> {
        let by_dst = |(ids, r): (Vec<u32>, &burn_gnn_graph::Relation)| {
            if !ids.is_empty() {
                r.read_stored()?;
            }
            let mut pairs: Vec<(u32, u32)> =
                ids.into_iter().map(|e| (r.dst()[e as usize], e)).collect();
            pairs.sort_unstable();
            Ok(pairs)
        };
        edges.into_iter().zip(self.source.graph.relations()).map(by_dst).collect()
    }

    /// As [`sample`](Self::sample), over edges strictly before the time of the seed, at every hop (PyG takes edges up
    /// to and at the time). Each seed has a separate tree (see [`with_disjoint`](Self::with_disjoint)), because trees
    /// see different edges; so does a seed given twice. Later edges have no influence: the batch is the one of the
    /// graph without them, and [degrees](crate::Block#degrees) do not count them either.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); not one time per seed; no relation has times.
    pub fn sample_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        key: SampleKey,
    ) -> Result<MiniBatch, GraphError> {
        let (seeds, times) = self.seeds_before(seeds)?;
        self.excluding(&seeds, Some(&times), vec![], key)
    }

    /// Seeds and times in schema order, checked.
    #[doc(hidden)]
    pub fn seeds_before<N: NodeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
    ) -> Result<SeedsWithTimes, GraphError> {
        self.check_timed()?;
        let seeds = Seeds::nodes_before(&self.source.graph, seeds)?;
        let times = seeds.times().unwrap_or_default().to_vec();
        Ok((seeds.into_ids(), times))
    }

    /// Samples around nodes that are rows of trees begun elsewhere, on another machine.
    ///
    /// # Errors
    /// As [`sample_excluding`](Self::sample_excluding); lists that do not fit one another.
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
        // The layouts that hops ask for, before workers do: several batches that begin at the same time wait for one
        // layout here, where workers would each make their own.
        for (t, relation) in self.source.graph.relations().iter().enumerate() {
            if self.fanouts[self.first..].iter().any(|hop| hop[t] > 0)
                && relation.stored().is_none()
            {
                relation.csc();
            }
        }
        // One entry into the thread pool for the whole batch.
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
