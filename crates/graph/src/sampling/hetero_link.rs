//! Batches of edges of several types for link prediction.

use super::SampleKey;
use super::block::MiniBatch;
use super::link::{LinkSampler, SeedLinks, sample_links};
use super::negative::setting;
use super::neighbor::NeighborSampler;
use crate::{EdgeKey, GraphError};

/// A batch of seed edges of several types.
#[derive(Clone, Debug)]
pub struct HeteroLinkBatch {
    /// Blocks that compute the endpoints of all pairs of all types.
    pub batch: MiniBatch,
    /// Seed edges, pairs and labels per edge type of the graph; empty for types without seeds.
    pub links: Vec<SeedLinks>,
}

/// Samples around edges of several types: one batch of blocks that compute the endpoints of all pairs. Each type has negative pairs and
/// an exclusion of its own; the edges that any of them excludes pass no messages for any.
///
/// With the same key the pairs of a type are those that its [`LinkSampler`] draws. Where edges have times, every seed edge has its own, as
/// under [`LinkSampler`](LinkSampler#times).
///
/// ```
/// use burn_gnn_graph::{Graph, HeteroLinkSampler, LinkExclusion, NegativePairs, NeighborSampler, SampleKey};
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
    /// Per edge type, where it may have seeds.
    types: Vec<Option<LinkSampler>>,
}

impl HeteroLinkSampler {
    /// Without edge types that may have seeds; [`with_type`](Self::with_type) adds them.
    pub fn new(sampler: NeighborSampler) -> Self {
        let types = sampler.graph().relations().iter().map(|_| None).collect();
        Self { sampler, types }
    }

    /// Edges of a type may be seeds. `describe` says how, from a [`LinkSampler`] without negatives that leaves the seeds out.
    ///
    /// # Errors
    /// Unknown or ambiguous type, one added before, what `describe` returns; as [`LinkSampler::new`].
    pub fn with_type(
        mut self,
        etype: impl EdgeKey,
        describe: impl FnOnce(LinkSampler) -> Result<LinkSampler, GraphError>,
    ) -> Result<Self, GraphError> {
        let schema = self.sampler.graph().schema().clone();
        let etype = schema.etype(etype)?;
        let links = describe(LinkSampler::new(self.sampler.clone(), etype)?)?;
        if links.etype() != etype || !links.sampler().is_same(&self.sampler) {
            return Err(setting("describe", "the link sampler that it was given, with other settings", "another link sampler"));
        }
        if self.types[etype].replace(links).is_some() {
            return Err(GraphError::Duplicate { what: "edge type", name: schema.etypes()[etype].to_string() });
        }
        Ok(self)
    }

    /// What blocks are made by.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.sampler
    }
    /// The sampler of an edge type, if its edges may be seeds.
    pub fn of_type(&self, etype: usize) -> Option<&LinkSampler> {
        self.types.get(etype)?.as_ref()
    }

    /// A batch of seed edges, given by id per edge type.
    ///
    /// # Errors
    /// Unknown type, one named twice or not [added](Self::with_type), an id out of range; as [`LinkSampler::sample`].
    pub fn sample<K: EdgeKey, I: AsRef<[u32]>>(
        &self,
        edges: impl IntoIterator<Item = (K, I)>,
        key: SampleKey,
    ) -> Result<HeteroLinkBatch, GraphError> {
        self.sample_lists(&self.check(edges)?, key)
    }

    /// Seed edges per edge type of the graph, checked.
    pub(crate) fn check<K: EdgeKey, I: AsRef<[u32]>>(&self, edges: impl IntoIterator<Item = (K, I)>) -> Result<Vec<Vec<u32>>, GraphError> {
        let g = self.sampler.graph();
        let edges = g.edge_selection("edges", edges)?;
        let other = (0..edges.len()).find(|&t| !edges[t].is_empty() && self.types[t].is_none());
        match other {
            Some(t) => {
                let found = format!("edges of `{}`", g.schema().etypes()[t]);
                Err(setting("edges", "edges of types that were added to the sampler (`with_type`)", &found))
            }
            None => Ok(edges),
        }
    }

    /// As [`sample`](Self::sample), of checked ids per edge type.
    pub(crate) fn sample_lists(&self, edges: &[Vec<u32>], key: SampleKey) -> Result<HeteroLinkBatch, GraphError> {
        let parts: Vec<(&LinkSampler, &[u32])> =
            self.types.iter().zip(edges).filter_map(|(links, edges)| Some((links.as_ref()?, edges.as_slice()))).collect();
        let (batch, made) = sample_links(&self.sampler, &parts, key)?;
        let mut links = vec![SeedLinks::default(); edges.len()];
        for ((of, _), made) in parts.iter().zip(made) {
            links[of.etype()] = made;
        }
        Ok(HeteroLinkBatch { batch, links })
    }
}
