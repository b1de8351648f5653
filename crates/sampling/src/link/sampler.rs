//! Defines `LinkSampler`: batches of edges for link prediction.

use std::borrow::Cow;

use crate::batch::block::Block;
use crate::batch::mini_batch::MiniBatch;
use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampled_batch::of_field;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::link::exclusion::{LinkExclusion, add_parallel_edges};
use crate::negative::sampler::{NegativeSampler, Negatives};
use crate::neighbor::block_sampler::BlockSampler;
use crate::neighbor::sampler::NeighborSampler;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{OrPanic, check_len, setting};
use burn_gnn_graph::{EdgeKey, GraphError};

/// Which negative pairs a batch of edges contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NegativePairs {
    /// No negatives.
    #[default]
    None,
    /// This number per positive pair, with the same source: corrupted tails.
    PerSource(usize),
    /// This number per positive pair, with the same destination: corrupted heads.
    PerDestination(usize),
    /// This number per positive pair with the same source, then as many with the same destination: corrupted tails and
    /// heads.
    PerEndpoint(usize),
    /// This number per positive pair, with both endpoints drawn.
    Global(usize),
}

impl NegativePairs {
    /// Number of negatives of a positive pair that keep its source, and that keep its destination.
    #[doc(hidden)]
    pub fn kept(self) -> [usize; 2] {
        match self {
            Self::None | Self::Global(_) => [0, 0],
            Self::PerSource(k) => [k, 0],
            Self::PerDestination(k) => [0, k],
            Self::PerEndpoint(k) => [k, k],
        }
    }
}

/// Pairs of nodes, as rows of the output nodes of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRows {
    /// Rows of the sources, among the output nodes of the source type.
    pub src: Vec<u32>,
    /// Rows of the destinations, among the output nodes of the destination type.
    pub dst: Vec<u32>,
}

/// A batch of seed edges with blocks `B`. On a partitioned graph it contains the seed edges that this rank owns.
#[derive(Clone, Debug)]
pub struct LinkBatch<B = MiniBatch, T = u32> {
    /// Blocks that compute the endpoints of all pairs.
    pub batch: B,
    /// Ids of the seed edges; on a partitioned graph, ids in the input graph.
    pub edges: Vec<T>,
    /// The seed edges.
    pub positive: LinkRows,
    /// The negative pairs; those of one positive pair are adjacent.
    pub negative: LinkRows,
    /// Whether each negative pair is guaranteed to have no edge; see [`Negatives::is_strict`].
    pub is_strict: Vec<bool>,
}

impl<T> LinkBatch<MiniBatch, T> {
    /// The blocks of the [`MiniBatch`].
    pub fn blocks(&self) -> &[Block] {
        &self.batch.blocks
    }
}

impl<B, T> LinkBatch<B, T> {
    /// Binary labels: 1 for each positive pair, then 0 for each negative pair.
    pub fn labels(&self) -> Vec<f32> {
        labels_of(&self.positive, &self.negative)
    }
}

/// Seed edges and negatives of one edge type in a batch of several types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedLinks<T = u32> {
    /// Ids of the seed edges; on a partitioned graph, ids in the input graph.
    pub edges: Vec<T>,
    /// The seed edges.
    pub positive: LinkRows,
    /// The negative pairs; those of one positive pair are adjacent.
    pub negative: LinkRows,
    /// Whether each negative pair is guaranteed to have no edge; see [`Negatives::is_strict`].
    pub is_strict: Vec<bool>,
}

impl<T> SeedLinks<T> {
    /// Binary labels: 1 for each positive pair, then 0 for each negative pair.
    pub fn labels(&self) -> Vec<f32> {
        labels_of(&self.positive, &self.negative)
    }
}

fn labels_of(positive: &LinkRows, negative: &LinkRows) -> Vec<f32> {
    let mut labels = vec![1.0; positive.src.len()];
    labels.resize(labels.len() + negative.src.len(), 0.0);
    labels
}

/// Samples batches of edges of one type for link prediction: seed edges, negative pairs, and the blocks that compute the
/// endpoints of all pairs. The seed edges and their parallel edges are excluded from the blocks (see [`LinkExclusion`]).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{LinkSampler, NegativePairs, NeighborSampler, SampleKey};
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?; // a path
/// let links = LinkSampler::new(NeighborSampler::new(&g, [-1])?, "_E")?.with_negatives(NegativePairs::PerSource(2));
/// let batch = links.sample(&[1], SampleKey::new(0))?; // 1 -> 2
/// assert_eq!((&batch.positive.src[..], &batch.positive.dst[..]), (&[0][..], &[1][..]));
/// assert_eq!(batch.negative.src, [0, 0]);
/// let edges = batch.batch.blocks[0].edge_ids(0);
/// assert!(edges.contains(&0) && !edges.contains(&1)); // 0 -> 1 passes messages, the seed does not
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Times
/// If edges of the sampler have times ([`NeighborSampler::with_times`]), the time of a seed is that of its edge, or the
/// one given to [`sample_before`](Self::sample_before). Negatives have the time of their positive pair. The endpoints of a
/// pair see only edges strictly before that time, each in a separate tree, as in [`NeighborSampler::sample_before`]; pairs
/// with a common endpoint share its row. A strict negative has no edge up to that time; it may have a later edge.
///
/// Any [`BlockSampler`] makes the blocks, for example a sampler on a GPU. Negatives are drawn on the CPU.
#[derive(Debug)]
pub struct LinkSampler {
    blocks: Box<dyn BlockSampler>,
    /// Sampler of destinations.
    tails: NegativeSampler,
    /// Sampler of sources, if heads are corrupted.
    heads: Option<NegativeSampler>,
    etype: usize,
    pairs: NegativePairs,
    exclusion: LinkExclusion,
    /// The reverse type of `exclusion`.
    reverse_type: Option<usize>,
}

impl LinkSampler {
    /// A sampler without negatives that excludes the seed edges.
    ///
    /// # Errors
    /// Unknown or ambiguous type; edges in a file that cannot be read.
    pub fn new(
        blocks: impl BlockSampler + 'static,
        etype: impl EdgeKey,
    ) -> Result<Self, GraphError> {
        let sampler = blocks.on_host();
        let etype = sampler.graph().schema().etype(etype)?;
        let tails = NegativeSampler::on(sampler.graph(), etype, false, sampler.edge_times(etype)?)?;
        let blocks = Box::new(blocks);
        Ok(Self {
            tails,
            heads: None,
            blocks,
            etype,
            pairs: NegativePairs::None,
            exclusion: LinkExclusion::Seeds,
            reverse_type: None,
        })
    }

    /// Sets the number and kind of negative pairs.
    #[must_use]
    pub fn with_negatives(mut self, pairs: NegativePairs) -> Self {
        self.pairs = pairs;
        if pairs.kept()[1] > 0 && self.heads.is_none() {
            let (sampler, etype) = (self.blocks.on_host(), self.etype);
            // `new` has read edges and times.
            let times = sampler.edge_times(etype);
            let times = times.map_err(|e| format!("times of a link sampler: {e}")).or_panic();
            self.heads = Some(NegativeSampler::on_read(sampler.graph(), etype, true, times));
        }
        self
    }

    /// Sets the sampler of negative destinations, or of negative sources for a sampler
    /// [of sources](NegativeSampler::of_sources). The default is strict and uniform. Can be called once for each.
    ///
    /// # Errors
    /// A sampler of another edge type or graph; a distribution by degrees if edges have times.
    pub fn with_negative_sampler(mut self, negatives: NegativeSampler) -> Result<Self, GraphError> {
        if !negatives.is_for(&self.sampler().graph().relations()[self.etype]) {
            return Err(setting(
                "negatives",
                "a sampler of the edge type of the seeds",
                &format!("one of {:?}", negatives.relation()),
            ));
        }
        let negatives = match self.sampler().edge_times(self.etype)? {
            Some(times) => negatives.with_times(times)?,
            None => negatives,
        };
        if negatives.is_of_sources() {
            self.heads = Some(negatives);
        } else {
            self.tails = negatives;
        }
        Ok(self)
    }

    /// Sets which edges are excluded from message passing.
    ///
    /// # Errors
    /// A number of reverse edges other than that of edges; ids out of range; an unknown reverse type, or one with another
    /// number of edges.
    pub fn with_exclusion(mut self, exclusion: LinkExclusion) -> Result<Self, GraphError> {
        self.reverse_type = exclusion.check(self.sampler().graph(), self.etype)?;
        self.exclusion = exclusion;
        Ok(self)
    }

    /// The edge type of the seeds.
    pub fn etype(&self) -> usize {
        self.etype
    }
    /// The sampler of the blocks.
    pub fn sampler(&self) -> &NeighborSampler {
        self.blocks.on_host()
    }

    /// Samples a batch of seed edges, given by id. If edges have times, the time of a seed is that of its edge.
    ///
    /// # Errors
    /// An id out of range; edges of other types have times, but not those of this type; as
    /// [`NegativeSampler::per_source`] and [`NegativeSampler::global`].
    pub fn sample(&self, edges: &[u32], key: SampleKey) -> Result<LinkBatch, GraphError> {
        self.check_own_times()?;
        self.batch(edges, None, key)
    }

    /// As [`sample`](Self::sample), with the given time of each seed instead of that of its edge; see
    /// [Times](Self#times).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{LinkExclusion, LinkSampler, NeighborSampler, SampleKey};
    /// let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
    /// let sampler = NeighborSampler::new(&g, [-1])?.with_times("_E", &[10, 20])?;
    /// let links = LinkSampler::new(sampler, "_E")?.with_exclusion(LinkExclusion::Nothing)?;
    /// assert_eq!(links.sample(&[1], SampleKey::new(0))?.batch.total_edges(), 1); // before 20: the edge 0 -> 1
    /// assert_eq!(links.sample_before(&[1], &[10], SampleKey::new(0))?.batch.total_edges(), 0);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`sample`](Self::sample); a number of times other than that of seeds; no edges of the sampler have times.
    pub fn sample_before(
        &self,
        edges: &[u32],
        times: &[i64],
        key: SampleKey,
    ) -> Result<LinkBatch, GraphError> {
        self.sampler().check_timed()?;
        check_len("times", "one per seed", edges.len(), times.len())
            .map_err(|e| self.sampler().graph().in_etype(self.etype, e))?;
        self.batch(edges, Some(times), key)
    }

    /// Samples a batch of seed edges with these times.
    pub(crate) fn batch(
        &self,
        edges: &[u32],
        times: Option<&[i64]>,
        key: SampleKey,
    ) -> Result<LinkBatch, GraphError> {
        let (batch, mut links) =
            sample_links(&*self.blocks, &[LinkSeeds { links: self, edges, times }], key)?;
        let SeedLinks { edges, positive, negative, is_strict } = links.swap_remove(0);
        Ok(LinkBatch { batch, edges, positive, negative, is_strict })
    }

    /// Checks that seeds without times can use those of their edges: fails if only other edge types have times.
    pub(crate) fn check_own_times(&self) -> Result<(), GraphError> {
        if !self.sampler().is_timed() || self.sampler().has_times(self.etype) {
            return Ok(());
        }
        let relation = self.sampler().graph().schema().etypes()[self.etype].to_string();
        let remedy = "other edges have times, so that seed edges need times: set them by `with_times`, or per seed by `Seeds::edges_before`";
        Err(GraphError::MissingRelation { arg: "times", relation, remedy })
    }

    /// Samples the negatives of positive pairs with these times.
    fn negatives(
        &self,
        src: &[u32],
        dst: &[u32],
        times: Option<&[i64]>,
        key: SampleKey,
    ) -> Result<CorruptedPairs, GraphError> {
        if let NegativePairs::Global(k) = self.pairs {
            Negatives::with_room((src.len() as u128).saturating_mul(k as u128))?;
            let drawn = match times {
                None => self.tails.global(k * src.len(), key)?,
                Some(times) => {
                    let times: Vec<i64> =
                        times.iter().flat_map(|&t| std::iter::repeat_n(t, k)).collect();
                    self.tails.global_at(&times, key)?
                }
            };
            return Ok(CorruptedPairs::global(src.len(), k, drawn.src, drawn.dst, drawn.is_strict));
        }
        let [tails, heads] = self.pairs.kept();
        let of_tails = match tails {
            0 => Negatives::default(),
            k => self.tails.of_pairs(false, src, dst, times, k, key)?,
        };
        let of_heads = match &self.heads {
            Some(sampler) if heads > 0 => sampler.of_pairs(true, src, dst, times, heads, key)?,
            _ => Negatives::default(),
        };
        Ok(CorruptedPairs::new(
            src.len(),
            (tails, of_tails.dst, of_tails.is_strict),
            (heads, of_heads.src, of_heads.is_strict),
        ))
    }
}

/// Batches of edges of the type, with negative pairs. For seeds with times see [Times](LinkSampler#times).
impl Sampler for LinkSampler {
    type Seed = u32;
    type Batch = LinkBatch;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<LinkBatch, GraphError> {
        self.check(seeds)?;
        self.batch(&seeds.ids()[self.etype], seeds.times().map(|times| &times[self.etype][..]), key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        let etypes = self.sampler().graph().schema().etypes();
        seeds.expect(SeedKind::Edges, etypes.len())?;
        if let Some(t) = (0..etypes.len()).find(|&t| t != self.etype && !seeds.ids()[t].is_empty())
        {
            let expected = format!("edges of `{}`, the type of the sampler", etypes[self.etype]);
            return Err(setting("seeds", &expected, &format!("some of `{}`", etypes[t])));
        }
        if seeds.times().is_some() { self.sampler().check_timed() } else { self.check_own_times() }
    }
}

/// Seed edges of one type.
pub(super) struct LinkSeeds<'a> {
    pub(super) links: &'a LinkSampler,
    pub(super) edges: &'a [u32],
    /// Time of each seed, if it is not that of its edge.
    pub(super) times: Option<&'a [i64]>,
}

impl LinkSeeds<'_> {
    /// The time of each seed, if edges of the sampler have times.
    fn times(&self) -> Result<Option<Vec<i64>>, GraphError> {
        let sampler = self.links.sampler();
        Ok(match (self.times, sampler.edge_times(self.links.etype)?) {
            (Some(times), _) => Some(times.to_vec()),
            (None, Some(own)) => Some(self.edges.iter().map(|&e| own[e as usize]).collect()),
            (None, None) => {
                if !self.edges.is_empty() {
                    self.links.check_own_times()?;
                }
                sampler.is_timed().then(Vec::new)
            }
        })
    }
}

/// Samples one batch of blocks for the endpoints of all pairs of several edge types. Returns the blocks, and the pairs of
/// each type. All link samplers must use the sampler of `blocks`.
pub(super) fn sample_links(
    blocks: &dyn BlockSampler,
    parts: &[LinkSeeds<'_>],
    key: SampleKey,
) -> Result<(MiniBatch, Vec<SeedLinks>), GraphError> {
    let sampler = blocks.on_host();
    let g = sampler.graph();
    let mut seeds = vec![vec![]; g.node_counts().len()];
    let mut times = sampler.is_timed().then(|| vec![vec![]; seeds.len()]);
    let mut excluded = vec![vec![]; g.relations().len()];
    let mut placed = Vec::with_capacity(parts.len());
    for part @ &LinkSeeds { links, edges, .. } in parts {
        let (src, dst) = g.find_edges(links.etype, edges)?;
        let of = part.times()?;
        let pairs = links.negatives(&src, &dst, of.as_deref(), key)?;
        let (s, d) = g.schema().endpoints(links.etype);
        // If both endpoints have the same node type, sources come first in its list.
        let starts = [(s, &src, &pairs.src, &pairs.src_of), (d, &dst, &pairs.dst, &pairs.dst_of)]
            .map(|(t, given, drawn, drawn_of)| {
                let start = seeds[t].len();
                seeds[t].extend(given.iter().chain(drawn));
                if let (Some(times), Some(of)) = (&mut times, &of) {
                    times[t].extend(of.iter().copied().chain(drawn_of.iter().map(|&i| of[i])));
                }
                (t, start)
            });
        links.exclusion.leave_out(links.etype, links.reverse_type, edges, &mut excluded);
        placed.push((starts, pairs.pairs, pairs.is_strict));
    }
    for (t, (relation, edges)) in g.relations().iter().zip(&mut excluded).enumerate() {
        if !sampler.has_times(t) {
            add_parallel_edges(relation, edges).map_err(|e| g.in_etype(t, e))?;
        }
    }
    let batch = blocks.blocks_excluding(&seeds, times.as_deref(), &excluded, key)?;
    let row = |(t, start): (usize, usize), place: usize| batch.seeds[t][start + place];
    let mut links = Vec::with_capacity(parts.len());
    for (&LinkSeeds { edges, .. }, ([s, d], pairs, is_strict)) in parts.iter().zip(placed) {
        let rows = |pairs: &[[usize; 2]]| LinkRows {
            src: pairs.iter().map(|p| row(s, p[0])).collect(),
            dst: pairs.iter().map(|p| row(d, p[1])).collect(),
        };
        let positive = rows(&(0..edges.len()).map(|i| [i, i]).collect::<Vec<_>>());
        links.push(SeedLinks {
            edges: edges.to_vec(),
            positive,
            negative: rows(&pairs),
            is_strict,
        });
    }
    Ok((batch, links))
}

/// Negative pairs as positions in the lists of sources and destinations; in these lists, the drawn nodes follow the
/// endpoints of the positive pairs.
#[doc(hidden)]
#[derive(Debug)]
pub struct CorruptedPairs<V = u32> {
    /// Positions of source and destination of each pair.
    pub pairs: Vec<[usize; 2]>,
    /// Whether each pair is guaranteed to have no edge.
    pub is_strict: Vec<bool>,
    /// Drawn sources.
    pub src: Vec<V>,
    /// Positive pair of each drawn source.
    pub src_of: Vec<usize>,
    /// Drawn destinations.
    pub dst: Vec<V>,
    /// Positive pair of each drawn destination.
    pub dst_of: Vec<usize>,
}

#[doc(hidden)]
impl<V> CorruptedPairs<V> {
    /// Pairs that keep one endpoint: per positive pair, `tails.0` pairs with its source and `heads.0` pairs with its
    /// destination. `tails` and `heads` hold the drawn nodes and whether each pair is strict.
    pub fn new(
        positives: usize,
        tails: (usize, Vec<V>, Vec<bool>),
        heads: (usize, Vec<V>, Vec<bool>),
    ) -> Self {
        let ((t, dst, tails), (h, src, heads)) = (tails, heads);
        let of = |k: usize| (0..positives).flat_map(|i| std::iter::repeat_n(i, k)).collect();
        let mut out =
            Self { src, dst, src_of: of(h), dst_of: of(t), pairs: vec![], is_strict: vec![] };
        for i in 0..positives {
            out.pairs.extend((i * t..(i + 1) * t).map(|j| [i, positives + j]));
            out.is_strict.extend_from_slice(&tails[i * t..(i + 1) * t]);
            out.pairs.extend((i * h..(i + 1) * h).map(|j| [positives + j, i]));
            out.is_strict.extend_from_slice(&heads[i * h..(i + 1) * h]);
        }
        out
    }
    /// `k` pairs per positive pair, of which both endpoints were drawn.
    pub fn global(
        positives: usize,
        k: usize,
        src: Vec<V>,
        dst: Vec<V>,
        is_strict: Vec<bool>,
    ) -> Self {
        let of: Vec<usize> = (0..positives).flat_map(|i| std::iter::repeat_n(i, k)).collect();
        let pairs = (0..src.len()).map(|j| [positives + j; 2]).collect();
        Self { pairs, is_strict, src, src_of: of.clone(), dst, dst_of: of }
    }
}

of_field! {
    LinkBatch<B, T>: batch as B, B, T;
}
