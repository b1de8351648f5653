//! Defines `HeteroLinkSampler`: batches of edges of several types.

use std::borrow::Cow;

use crate::batch::mini_batch::MiniBatch;
use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampled_batch::of_field;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::link::sampler::{LinkSampler, LinkSeeds, SeedLinks, sample_links};
use crate::neighbor::sampler::NeighborSampler;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{EdgeKey, GraphError};

/// A batch of seed edges of several types with blocks `B`. On a partitioned graph it contains the seed edges that this
/// rank owns.
#[derive(Clone, Debug)]
pub struct HeteroLinkBatch<B = MiniBatch, T = u32> {
    /// Blocks that compute the endpoints of the pairs of all types.
    pub batch: B,
    /// Seed edges and pairs per edge type of the graph; empty for types without seeds.
    pub links: Vec<SeedLinks<T>>,
}

/// Samples batches of edges of several types for link prediction: one batch of blocks computes the endpoints of all
/// pairs. Each type has its own negatives and exclusion; an edge that one type excludes is excluded from all blocks.
///
/// With the same key, the pairs of a type equal those of its [`LinkSampler`]. For times see
/// [`LinkSampler`](LinkSampler#times).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{HeteroLinkSampler, LinkExclusion, NegativePairs, NeighborSampler, SampleKey};
/// let g = Graph::builder()
///     .edges(("user", "buys", "item"), vec![0, 1, 2], vec![0, 1, 1])
///     .edges(("user", "follows", "user"), vec![0, 1], vec![1, 2])
///     .build()?;
/// let links = HeteroLinkSampler::new(NeighborSampler::new(&g, [-1])?)
///     .with_type("buys", |links| Ok(links.with_negatives(NegativePairs::PerSource(2))))?
///     .with_type("follows", |links| links.with_exclusion(LinkExclusion::Nothing))?;
/// let batch = links.sample([("buys", [0, 2]), ("follows", [1, 0])], SampleKey::new(0))?;
/// let [buys, follows] = ["buys", "follows"].map(|name| &batch.links[g.schema().etype(name).unwrap()]);
/// assert_eq!((buys.labels().len(), follows.labels().len()), (6, 2));
/// assert!(!batch.batch.blocks[0].edge_ids(0).contains(&2)); // the third purchase is a seed
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct HeteroLinkSampler {
    sampler: NeighborSampler,
    /// Link sampler of each edge type that may have seeds.
    types: Vec<Option<LinkSampler>>,
}

impl HeteroLinkSampler {
    /// A sampler without edge types; [`with_type`](Self::with_type) adds them.
    pub fn new(sampler: NeighborSampler) -> Self {
        let types = sampler.graph().relations().iter().map(|_| None).collect();
        Self { sampler, types }
    }

    /// Adds an edge type whose edges may be seeds. `describe` configures its [`LinkSampler`], which by default has no
    /// negatives and excludes the seed edges.
    ///
    /// # Errors
    /// Unknown or ambiguous type; a type that was added before; errors of `describe`.
    pub fn with_type(
        mut self,
        etype: impl EdgeKey,
        describe: impl FnOnce(LinkSampler) -> Result<LinkSampler, GraphError>,
    ) -> Result<Self, GraphError> {
        let schema = self.sampler.graph().schema().clone();
        let etype = schema.etype(etype)?;
        let links = describe(LinkSampler::new(self.sampler.clone(), etype)?)?;
        if links.etype() != etype || !links.sampler().is_same(&self.sampler) {
            return Err(setting(
                "describe",
                "the given link sampler with changed settings",
                "another link sampler",
            ));
        }
        if self.types[etype].replace(links).is_some() {
            return Err(GraphError::Duplicate {
                what: "edge type",
                name: schema.etypes()[etype].to_string(),
            });
        }
        Ok(self)
    }

    /// The sampler of the blocks.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.sampler
    }

    /// Samples a batch of seed edges, given by id per edge type. If edges have times, the time of a seed is that of its
    /// edge.
    ///
    /// # Errors
    /// A type that is unknown, repeated or not [added](Self::with_type); an id out of range; as [`LinkSampler::sample`].
    pub fn sample<K: EdgeKey, I: AsRef<[u32]>>(
        &self,
        edges: impl IntoIterator<Item = (K, I)>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch, GraphError> {
        self.sample_batch(&Seeds::edges(self.sampler.graph(), edges)?, key)
    }

    /// As [`sample`](Self::sample), with the given time of each seed instead of that of its edge; see
    /// [Times](LinkSampler#times).
    ///
    /// # Errors
    /// As [`sample`](Self::sample); a number of times other than that of seeds; no edges of the sampler have times.
    pub fn sample_before<K: EdgeKey, I: AsRef<[u32]>, T: AsRef<[i64]>>(
        &self,
        edges: impl IntoIterator<Item = (K, I, T)>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch, GraphError> {
        self.sampler.check_timed()?;
        self.sample_batch(&Seeds::edges_before(self.sampler.graph(), edges)?, key)
    }
}

/// Batches of edges of several types, with negative pairs of each. For seeds with times see [Times](LinkSampler#times).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{HeteroLinkSampler, LinkSampler, Loader, NegativePairs, NeighborSampler, Seeds};
/// let g = Graph::builder()
///     .edges(("user", "buys", "item"), vec![0, 1, 2], vec![0, 1, 1])
///     .edges(("user", "follows", "user"), vec![0, 1], vec![1, 2])
///     .build()?;
/// let one = |links: LinkSampler| Ok(links.with_negatives(NegativePairs::PerSource(1)));
/// let links = HeteroLinkSampler::new(NeighborSampler::new(&g, [-1])?).with_type("buys", one)?.with_type("follows", one)?;
/// let seeds = Seeds::edges(&g, [("buys", vec![0, 1, 2]), ("follows", vec![0, 1])])?;
/// let batch = Loader::new(links, seeds, 4)?.epoch(0).next().expect("a batch")?;
/// let pairs: usize = batch.batch.links.iter().map(|links| links.labels().len()).sum();
/// assert_eq!(pairs, 8); // four edges, a negative pair of each
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
impl Sampler for HeteroLinkSampler {
    type Seed = u32;
    type Batch = HeteroLinkBatch;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<HeteroLinkBatch, GraphError> {
        self.check(seeds)?;
        let (edges, times) = (seeds.ids(), seeds.times());
        let part = |t: usize| {
            let links = self.types[t].as_ref()?;
            Some(LinkSeeds { links, edges: &edges[t], times: times.map(|times| &times[t][..]) })
        };
        let parts: Vec<LinkSeeds<'_>> = (0..edges.len()).filter_map(part).collect();
        let (batch, made) = sample_links(&self.sampler, &parts, key)?;
        let mut links = vec![SeedLinks::default(); edges.len()];
        for (part, made) in parts.iter().zip(made) {
            links[part.links.etype()] = made;
        }
        Ok(HeteroLinkBatch { batch, links })
    }

    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        let etypes = self.sampler.graph().schema().etypes();
        seeds.expect(SeedKind::Edges, etypes.len())?;
        if seeds.times().is_some() {
            self.sampler.check_timed()?;
        }
        for (t, links) in self.types.iter().enumerate().filter(|(t, _)| !seeds.ids()[*t].is_empty())
        {
            let Some(links) = links else {
                let expected = "edges of types that the sampler has (add one by `with_type`)";
                return Err(setting("edges", expected, &format!("edges of `{}`", etypes[t])));
            };
            if seeds.times().is_none() {
                links.check_own_times()?;
            }
        }
        Ok(())
    }
}

of_field! {
    HeteroLinkBatch<B, T>: batch as B, B, T;
}
