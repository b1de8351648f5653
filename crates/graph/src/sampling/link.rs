//! Batches of edges for link prediction.

use super::SampleKey;
use super::block::MiniBatch;
use super::negative::{NegativeSampler, Negatives, setting};
use super::neighbor::NeighborSampler;
use crate::derive::check_ids;
use crate::relation::check_len;
use crate::{EdgeKey, GraphError};

/// Negative pairs of a batch of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NegativePairs {
    /// None.
    #[default]
    None,
    /// So many for every positive pair, with its source (triplets: source, positive, negatives).
    PerSource(usize),
    /// So many for every positive pair, both ends drawn (binary classification).
    Global(usize),
}

/// Edges that are left out of message passing, because they would tell the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkExclusion {
    /// None: every edge may be sampled.
    Nothing,
    /// The seed edges.
    #[default]
    Seeds,
    /// The seed edges, and of each the edge of the same type whose id this list has at its place.
    Reverse(Vec<u32>),
    /// The seed edges, and those of the same ids in the type that holds their reverses, such as one made by
    /// [`Graph::with_inverse_relations`](crate::Graph::with_inverse_relations). By its number.
    ReverseType(usize),
}

/// Pairs of rows among the output nodes of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRows {
    /// Rows of the source type.
    pub src: Vec<u32>,
    /// Rows of the destination type.
    pub dst: Vec<u32>,
}

/// A batch of seed edges.
#[derive(Clone, Debug)]
pub struct LinkBatch {
    /// Blocks that compute the nodes at the ends of all pairs.
    pub batch: MiniBatch,
    /// Ids of the seed edges.
    pub edges: Vec<u32>,
    /// The seed edges.
    pub positive: LinkRows,
    /// The negative pairs, those of one positive pair one after the other.
    pub negative: LinkRows,
    /// Whether each negative pair is known to be no edge; see [`Negatives::is_strict`].
    pub is_strict: Vec<bool>,
}

impl LinkBatch {
    /// 1 for each positive pair, then 0 for each negative one.
    pub fn labels(&self) -> Vec<f32> {
        let mut labels = vec![1.0; self.positive.src.len()];
        labels.resize(labels.len() + self.negative.src.len(), 0.0);
        labels
    }
}

/// Samples around edges of one type: the edges, negative pairs, and the blocks that compute their ends, out of which the edges
/// themselves are left.
///
/// ```
/// use burn_gnn_graph::{Graph, LinkSampler, NegativePairs, NeighborSampler, SampleKey};
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?; // a path
/// let links = LinkSampler::new(NeighborSampler::new(&g, [-1])?, "_E")?.with_negatives(NegativePairs::PerSource(2));
/// let batch = links.sample(&[1], SampleKey::new(0))?; // 1 -> 2
/// assert_eq!((&batch.positive.src[..], &batch.positive.dst[..]), (&[0][..], &[1][..]));
/// assert_eq!(batch.negative.src, [0, 0]);
/// let edges = batch.batch.blocks[0].edge_ids(0);
/// assert!(edges.contains(&0) && !edges.contains(&1)); // 0 -> 1 passes messages, the seed does not
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct LinkSampler {
    sampler: NeighborSampler,
    negatives: NegativeSampler,
    etype: usize,
    pairs: NegativePairs,
    exclusion: LinkExclusion,
}

impl LinkSampler {
    /// Without negatives; seed edges are left out of message passing.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn new(sampler: NeighborSampler, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let etype = sampler.graph().schema().etype(etype)?;
        let negatives = NegativeSampler::new(sampler.graph(), etype)?;
        Ok(Self { sampler, negatives, etype, pairs: NegativePairs::None, exclusion: LinkExclusion::Seeds })
    }

    /// How many negative pairs, and which.
    #[must_use]
    pub fn with_negatives(mut self, pairs: NegativePairs) -> Self {
        self.pairs = pairs;
        self
    }

    /// How negative pairs are drawn, if not strictly and uniformly.
    ///
    /// # Errors
    /// A sampler of another edge type or graph.
    pub fn with_negative_sampler(mut self, negatives: NegativeSampler) -> Result<Self, GraphError> {
        if !negatives.relation().is_same(&self.sampler.graph().relations()[self.etype]) {
            return Err(setting("negatives", "a sampler of the edge type of the seeds", &format!("one of {:?}", negatives.relation())));
        }
        self.negatives = negatives;
        Ok(self)
    }

    /// Which edges are left out of message passing.
    ///
    /// # Errors
    /// A list of reverses that does not have one edge per edge, or ids out of range; a type of reverses with another number of
    /// edges, or none of that number.
    pub fn with_exclusion(mut self, exclusion: LinkExclusion) -> Result<Self, GraphError> {
        let g = self.sampler.graph();
        let edges = g.relations()[self.etype].num_edges();
        match &exclusion {
            LinkExclusion::Nothing | LinkExclusion::Seeds => {}
            LinkExclusion::Reverse(ids) => {
                check_len("reverse", "one per edge", edges, ids.len()).map_err(|e| g.in_etype(self.etype, e))?;
                check_ids("reverse", &format!("edge type `{}`", g.schema().etypes()[self.etype]), ids, edges)?;
            }
            LinkExclusion::ReverseType(t) => {
                let t = g.schema().etype(*t)?;
                let found = g.relations()[t].num_edges();
                check_len("reverse type", "that of the seed edges", edges, found).map_err(|e| g.in_etype(t, e))?;
            }
        }
        self.exclusion = exclusion;
        Ok(self)
    }

    /// The edge type of seeds.
    pub fn etype(&self) -> usize {
        self.etype
    }
    /// What blocks are made by.
    pub fn sampler(&self) -> &NeighborSampler {
        &self.sampler
    }

    /// A batch of seed edges, by id.
    ///
    /// # Errors
    /// An id out of range; as [`NegativeSampler::per_source`] and [`NegativeSampler::global`].
    pub fn sample(&self, edges: &[u32], key: SampleKey) -> Result<LinkBatch, GraphError> {
        let g = self.sampler.graph();
        let (src, dst) = g.find_edges(self.etype, edges)?;
        let negatives = match self.pairs {
            NegativePairs::None => Negatives::default(),
            NegativePairs::PerSource(k) => self.negatives.per_source(&src, &dst, k, key)?,
            NegativePairs::Global(k) => self.negatives.global(k * edges.len(), key)?,
        };
        let (s, d) = g.schema().ends(self.etype);
        let (positives, count) = (edges.len(), edges.len() + negatives.src.len());
        let mut seeds = vec![vec![]; g.node_counts().len()];
        seeds[s].extend(src.into_iter().chain(negatives.src));
        seeds[d].extend(dst.into_iter().chain(negatives.dst));
        let mut excluded = vec![vec![]; g.relations().len()];
        if self.exclusion != LinkExclusion::Nothing {
            excluded[self.etype].extend_from_slice(edges);
        }
        match &self.exclusion {
            LinkExclusion::Reverse(ids) => excluded[self.etype].extend(edges.iter().map(|&e| ids[e as usize])),
            LinkExclusion::ReverseType(t) => excluded[*t].extend_from_slice(edges),
            LinkExclusion::Nothing | LinkExclusion::Seeds => {}
        }
        let batch = self.sampler.excluding(&seeds, excluded, self.sampler.disjoint, key);
        // Of one node type both ends stand in one list, sources first.
        let of_dst = if s == d { count } else { 0 };
        let rows = |range: std::ops::Range<usize>| LinkRows {
            src: batch.seeds[s][range.clone()].to_vec(),
            dst: batch.seeds[d][range.start + of_dst..range.end + of_dst].to_vec(),
        };
        let (positive, negative) = (rows(0..positives), rows(positives..count));
        Ok(LinkBatch { batch, edges: edges.to_vec(), positive, negative, is_strict: negatives.is_strict })
    }
}
