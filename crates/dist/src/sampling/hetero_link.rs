//! Link sampling over all parts with seed edges of several types.

use std::sync::Arc;

use burn_gnn_graph::EdgeKey;
use burn_gnn_sampling::{HeteroLinkBatch, SampleKey, Sampler, SeedKind, SeedLinks, Seeds};

use super::batch::DistBatch;
use super::dist_sampler::DistSampler;
use super::link::{DistLinkSampler, LinkSeeds, sample_links};
use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::agree;
use crate::graph::DistGraph;
use crate::loading::{RankSampler, SeedLists, in_order};

/// [`HeteroLinkSampler`](burn_gnn_sampling::HeteroLinkSampler) over a partitioned graph: a [`DistLinkSampler`] per edge
/// type, with one batch of blocks for the pairs of all types. The edges that any of them excludes pass no messages in
/// the whole batch, on all ranks.
///
/// ```
/// use burn_gnn_dist::{DistError, DistGraph, DistHeteroLinkSampler, DistSampler, PartitionConfig, partition_graph, run_ranks};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NegativePairs, SampleKey};
/// let g = Graph::builder()
///     .edges(("user", "buys", "item"), vec![0, 1, 2], vec![0, 1, 1])
///     .edges(("user", "follows", "user"), vec![0, 1], vec![1, 2])
///     .build()?;
/// let parts = partition_graph(&g, &PartitionConfig::new("shop", 2))?;
/// let pairs = run_ranks(2, |comm| {
///     let d = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
///     let links = DistHeteroLinkSampler::new(DistSampler::new(&d, [-1])?)
///         .with_type("buys", |links| links.with_negatives(NegativePairs::PerSource(2)))?
///         .with_type("follows", Ok)?;
///     let share = links.sample([("buys", [0, 2]), ("follows", [1, 0])], SampleKey::new(0))?;
///     Ok::<_, DistError>(share.links.iter().map(|links| links.labels().len()).sum::<usize>())
/// })?;
/// assert_eq!(pairs.iter().sum::<usize>(), 8); // two of six pairs, two of two
/// # Ok::<(), DistError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistHeteroLinkSampler {
    sampler: DistSampler,
    /// The link sampler of each edge type that may have seeds.
    types: Vec<Option<DistLinkSampler>>,
}

impl DistHeteroLinkSampler {
    /// A sampler without edge types. Add them by [`with_type`](Self::with_type).
    pub fn new(sampler: DistSampler) -> Self {
        let types = vec![None; sampler.graph().etypes().len()];
        Self { sampler, types }
    }

    /// Adds an edge type whose edges may be seeds. `describe` configures its [`DistLinkSampler`], which has no
    /// negatives and excludes the seeds by default. It must be the same on all ranks. Collective if `describe` is.
    ///
    /// # Errors
    /// An unknown or ambiguous type, or one that was added before; the error of `describe`.
    pub fn with_type(
        mut self,
        etype: impl EdgeKey,
        describe: impl FnOnce(DistLinkSampler) -> Result<DistLinkSampler, DistError>,
    ) -> Result<Self, DistError> {
        let links = describe(DistLinkSampler::new(self.sampler.clone(), etype)?)?;
        let etype = links.etype();
        if !links.sampler().is_same(&self.sampler) {
            let expected = "the link sampler of its argument, with other settings".into();
            return Err(DistError::Config {
                arg: "describe",
                expected,
                found: "another link sampler".into(),
            });
        }
        if self.types[etype].replace(links).is_some() {
            return Err(self.sampler.graph().inner.edges.named_twice(etype).into());
        }
        Ok(self)
    }

    /// The sampler of blocks.
    pub fn sampler(&self) -> &DistSampler {
        &self.sampler
    }
    /// Replaces the communicator by another one of the same ranks.
    #[must_use]
    pub fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self {
        let types = self
            .types
            .into_iter()
            .map(|links| Some(links?.with_communicator(comm.clone())))
            .collect();
        Self { sampler: self.sampler.with_communicator(comm), types }
    }

    /// Samples this rank's share of a batch of seed edges. The lists of ids in the input graph, per edge type, are the
    /// same on all ranks. If edges have times, each seed has the time of its edge. Collective.
    ///
    /// # Errors
    /// On all ranks: a type that is unknown, occurs twice or was not [added](Self::with_type); as
    /// [`DistLinkSampler::sample`].
    pub fn sample<K: EdgeKey, I: AsRef<[u64]>>(
        &self,
        edges: impl IntoIterator<Item = (K, I)>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch<DistBatch, u64>, DistError> {
        let named =
            self.added(edges.into_iter().map(|(key, ids)| (key, ids.as_ref().is_empty(), ids)));
        self.checked(
            named.and_then(|named| Ok((self.sampler.graph().select_edges(named)?, None))),
            key,
        )
    }

    /// [`sample`](Self::sample) with a time for each seed, which replaces the time of the edge. Collective.
    ///
    /// # Errors
    /// As [`sample`](Self::sample). Also on all ranks: the number of times differs from that of seeds; no edges of the
    /// sampler have times.
    pub fn sample_before<K: EdgeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        edges: impl IntoIterator<Item = (K, I, T)>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch<DistBatch, u64>, DistError> {
        let named = self.added(
            edges.into_iter().map(|(key, ids, times)| (key, ids.as_ref().is_empty(), (ids, times))),
        );
        let named = self.sampler.check_timed().and(named);
        let flat = |(t, (ids, times))| (t, ids, times);
        self.checked(
            named.and_then(|named| {
                self.sampler.graph().select_edges_before(named.into_iter().map(flat))
            }),
            key,
        )
    }

    /// Numbers of the types of seed edges. Types with seeds must have been added.
    fn added<K: EdgeKey, E>(
        &self,
        edges: impl Iterator<Item = (K, bool, E)>,
    ) -> Result<Vec<(usize, E)>, DistError> {
        let numbered = |(key, is_empty, edges)| {
            let t = self.sampler.graph().schema().etype(key)?;
            if is_empty || self.types[t].is_some() {
                Ok((t, edges))
            } else {
                Err(self.not_added(t))
            }
        };
        edges.map(numbered).collect()
    }
    fn not_added(&self, etype: usize) -> DistError {
        let expected = "edges of types that were added to the sampler (`with_type`)".into();
        DistError::Config {
            arg: "edges",
            expected,
            found: format!("edges of `{}`", self.sampler.graph().etypes()[etype]),
        }
    }
    fn checked(
        &self,
        lists: Result<SeedLists, DistError>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch<DistBatch, u64>, DistError> {
        let seeds = lists.and_then(|(edges, times)| Ok(Seeds::new(SeedKind::Edges, edges, times)?));
        let seeds = seeds.and_then(|seeds| self.check_here(&seeds).map(|()| seeds));
        let seeds = agree(&*self.sampler.graph().comm, "seed edges: lists", seeds)?;
        self.sample_batch(&seeds, key)
    }
    /// [`Sampler::check`] on this rank.
    fn check_here(&self, seeds: &Seeds<u64>) -> Result<(), DistError> {
        seeds.expect(SeedKind::Edges, self.types.len())?;
        if seeds.times().is_some() {
            self.sampler.check_timed()?;
        }
        for (t, links) in self.types.iter().enumerate().filter(|(t, _)| !seeds.ids()[*t].is_empty())
        {
            let Some(links) = links else { return Err(self.not_added(t)) };
            if seeds.times().is_none() {
                links.check_own_times()?;
            }
        }
        Ok(())
    }
}

/// Samples batches of seed edges of several types ([`DistGraph::edge_seeds`]) with negative pairs of each. For times
/// see [`DistLinkSampler`].
impl Sampler for DistHeteroLinkSampler {
    type Seed = u64;
    type Batch = HeteroLinkBatch<DistBatch, u64>;
    type Error = DistError;
    in_order!();

    fn sample_batch(
        &self,
        seeds: &Seeds<u64>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch<DistBatch, u64>, DistError> {
        let (edges, times) = (seeds.ids(), seeds.times());
        let mut seeds = vec![];
        for (t, edges) in edges.iter().enumerate() {
            let times = times.map(|times| &times[t][..]);
            seeds.extend(self.types[t].as_ref().map(|links| LinkSeeds { links, edges, times }));
        }
        let (batch, made) = sample_links(&self.sampler, &seeds, key)?;
        let mut links = vec![SeedLinks::default(); edges.len()];
        for (part, made) in seeds.iter().zip(made) {
            links[part.links.etype()] = made;
        }
        Ok(HeteroLinkBatch { batch, links })
    }
    fn check(&self, seeds: &Seeds<u64>) -> Result<(), DistError> {
        agree(&*self.sampler.graph().comm, "seed edges: times", self.check_here(seeds))
    }
    fn own_seeds(&self, seeds: Seeds<u64>, batch: &HeteroLinkBatch<DistBatch, u64>) -> Seeds<u64> {
        seeds.with_own(batch.links.iter().map(|links| links.edges.clone()).collect())
    }
}

impl RankSampler for DistHeteroLinkSampler {
    fn graph(&self) -> &DistGraph {
        self.sampler.graph()
    }
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self {
        Self::with_communicator(self, comm)
    }
}
