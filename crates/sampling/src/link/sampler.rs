//! Samples batches of edges for link prediction.

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
use burn_gnn_graph::internal::{check_len, setting};
use burn_gnn_graph::{EdgeKey, GraphError};

/// Negative pairs of a batch of edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NegativePairs {
    /// None.
    #[default]
    None,
    /// So many for every positive pair, with its source: corrupted tails (triplets: source, positive, negatives).
    PerSource(usize),
    /// So many for every positive pair, with its destination: corrupted heads.
    PerDestination(usize),
    /// So many for every positive pair with its source, then as many with its destination: corrupted tails and heads.
    PerEndpoint(usize),
    /// So many for every positive pair, both endpoints drawn (binary classification).
    Global(usize),
}

impl NegativePairs {
    /// Negatives of one positive pair that keep its source, and of those that keep its destination.
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

/// Pairs of rows among the output nodes of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkRows {
    /// Rows of the source type.
    pub src: Vec<u32>,
    /// Rows of the destination type.
    pub dst: Vec<u32>,
}

/// A batch of seed edges with blocks `B`; over a partitioned graph this rank's share of it, that of the seed edges that
/// it owns.
#[derive(Clone, Debug)]
pub struct LinkBatch<B = MiniBatch, T = u32> {
    /// Blocks that compute the endpoints of all pairs.
    pub batch: B,
    /// Ids of the seed edges; over a partitioned graph ids in the input graph.
    pub edges: Vec<T>,
    /// The seed edges.
    pub positive: LinkRows,
    /// The negative pairs, those of one positive pair one after the other.
    pub negative: LinkRows,
    /// Whether each negative pair is known to be no edge; see [`Negatives::is_strict`].
    pub is_strict: Vec<bool>,
}

impl<T> LinkBatch<MiniBatch, T> {
    /// The blocks, as those of [`MiniBatch`].
    pub fn blocks(&self) -> &[Block] {
        &self.batch.blocks
    }
}

impl<B, T> LinkBatch<B, T> {
    /// 1 for each positive pair, then 0 for each negative one.
    pub fn labels(&self) -> Vec<f32> {
        labels_of(&self.positive, &self.negative)
    }
}

/// Seed edges of one type in a batch, as a [`LinkBatch`] has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedLinks<T = u32> {
    /// Ids of the seed edges; over a partitioned graph ids in the input graph.
    pub edges: Vec<T>,
    /// The seed edges.
    pub positive: LinkRows,
    /// The negative pairs, those of one positive pair one after the other.
    pub negative: LinkRows,
    /// Whether each negative pair is known to be no edge; see [`Negatives::is_strict`].
    pub is_strict: Vec<bool>,
}

impl<T> SeedLinks<T> {
    /// 1 for each positive pair, then 0 for each negative one.
    pub fn labels(&self) -> Vec<f32> {
        labels_of(&self.positive, &self.negative)
    }
}

fn labels_of(positive: &LinkRows, negative: &LinkRows) -> Vec<f32> {
    let mut labels = vec![1.0; positive.src.len()];
    labels.resize(labels.len() + negative.src.len(), 0.0);
    labels
}

/// Samples around edges of one type: the edges, negative pairs, and the blocks that compute their endpoints, out of
/// which the edges themselves and those parallel to them are left (see [`LinkExclusion`]).
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
/// Where edges of the sampler have times ([`NeighborSampler::with_times`]), every seed edge has its own time, or the
/// one that is given for it ([`sample_before`](Self::sample_before)), and so have its negatives. The endpoints of a
/// pair see edges strictly before that time, each in a separate tree, as under [`NeighborSampler::sample_before`];
/// pairs that keep an endpoint share its row. A strict negative is no edge up to that time: a later edge keeps no pair
/// from being drawn, the seed edge itself neither where its seed has an earlier time.
///
/// Blocks are those of any [`BlockSampler`], so a sampler of a device makes them there; negatives are drawn on the
/// host.
#[derive(Debug)]
pub struct LinkSampler {
    blocks: Box<dyn BlockSampler>,
    /// Draws destinations.
    tails: NegativeSampler,
    /// Draws sources; made when it is needed.
    heads: Option<NegativeSampler>,
    etype: usize,
    pairs: NegativePairs,
    exclusion: LinkExclusion,
    /// The number of the type that `exclusion` names.
    reverse_type: Option<usize>,
}

impl LinkSampler {
    /// Without negatives; seed edges are left out of message passing.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn new(
        blocks: impl BlockSampler + 'static,
        etype: impl EdgeKey,
    ) -> Result<Self, GraphError> {
        let sampler = blocks.on_host();
        let etype = sampler.graph().schema().etype(etype)?;
        let tails = NegativeSampler::on(sampler.graph(), etype, false, sampler.edge_times(etype))?;
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

    /// How many negative pairs, and which.
    #[must_use]
    pub fn with_negatives(mut self, pairs: NegativePairs) -> Self {
        self.pairs = pairs;
        if pairs.kept()[1] > 0 && self.heads.is_none() {
            let (sampler, etype) = (self.blocks.on_host(), self.etype);
            let times = sampler.edge_times(etype);
            // `new` has read the edges.
            self.heads = Some(NegativeSampler::on_read(sampler.graph(), etype, true, times));
        }
        self
    }

    /// How negative pairs are drawn, if not strictly and uniformly: their destinations, or their sources if it is a
    /// sampler [of sources](NegativeSampler::of_sources). May be called once for each.
    ///
    /// # Errors
    /// A sampler of another edge type or graph; one that counts degrees where edges have times.
    pub fn with_negative_sampler(mut self, negatives: NegativeSampler) -> Result<Self, GraphError> {
        if !negatives.is_for(&self.sampler().graph().relations()[self.etype]) {
            return Err(setting(
                "negatives",
                "a sampler of the edge type of the seeds",
                &format!("one of {:?}", negatives.relation()),
            ));
        }
        let negatives = match self.sampler().times_of(self.etype) {
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

    /// Which edges are left out of message passing.
    ///
    /// # Errors
    /// A list of reverses that does not have one edge per edge, or ids out of range; a type of reverses with another
    /// number of edges, or none of that number.
    pub fn with_exclusion(mut self, exclusion: LinkExclusion) -> Result<Self, GraphError> {
        self.reverse_type = exclusion.check(self.sampler().graph(), self.etype)?;
        self.exclusion = exclusion;
        Ok(self)
    }

    /// The edge type of seeds.
    pub fn etype(&self) -> usize {
        self.etype
    }
    /// What blocks are made by.
    pub fn sampler(&self) -> &NeighborSampler {
        self.blocks.on_host()
    }

    /// A batch of seed edges, by id; where edges have times, each seed has that of its edge.
    ///
    /// # Errors
    /// An id out of range; other edges have times, but not those of this type; as [`NegativeSampler::per_source`] and
    /// [`NegativeSampler::global`].
    pub fn sample(&self, edges: &[u32], key: SampleKey) -> Result<LinkBatch, GraphError> {
        self.check_own_times()?;
        self.batch(edges, None, key)
    }

    /// As [`sample`](Self::sample), with a time of each seed instead of its edge's own; see [Times](Self#times).
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
    /// As [`sample`](Self::sample); not one time per seed; no edges of the sampler have times.
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

    /// A batch of seed edges, which have these times.
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

    /// Refuses seeds that have the times of their edges where only other edges have times.
    pub(crate) fn check_own_times(&self) -> Result<(), GraphError> {
        if !self.sampler().is_timed() || self.sampler().times_of(self.etype).is_some() {
            return Ok(());
        }
        let relation = self.sampler().graph().schema().etypes()[self.etype].to_string();
        let remedy = "other edges have times, so seed edges need some: give theirs to the sampler (`with_times`), or one per seed (`Seeds::edges_before`)";
        Err(GraphError::MissingRelation { arg: "times", relation, remedy })
    }

    /// The negatives of these pairs, which have these times.
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

/// Batches of edges of the type, with negative pairs. Where edges of the sampler have times, a seed edge and its
/// negatives have the time of the edge, or one that is given; see [Times](LinkSampler#times).
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
    /// Of each seed, where it is not that of its edge.
    pub(super) times: Option<&'a [i64]>,
}

impl LinkSeeds<'_> {
    /// The time of each seed, where edges of the sampler have times.
    fn times(&self) -> Result<Option<Vec<i64>>, GraphError> {
        let sampler = self.links.sampler();
        Ok(match (self.times, sampler.times_of(self.links.etype)) {
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

/// The blocks around seed edges of several types, and the seed edges of each: what `blocks` makes of the endpoints of
/// all pairs. Every [`LinkSampler`] is one on them.
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
        // Of one node type both endpoints stand in one list, sources first.
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
        if sampler.times_of(t).is_none() {
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

/// Negative pairs by their places in the lists of sources and destinations, in which the nodes drawn follow those of
/// the positive pairs.
#[doc(hidden)]
#[derive(Debug)]
pub struct CorruptedPairs<V = u32> {
    /// Places of source and destination of each pair.
    pub pairs: Vec<[usize; 2]>,
    /// Whether each is known to be no edge.
    pub is_strict: Vec<bool>,
    /// Sources drawn, and the positive pair that each belongs to.
    pub src: Vec<V>,
    /// See `src`.
    pub src_of: Vec<usize>,
    /// Destinations drawn, and the positive pair that each belongs to.
    pub dst: Vec<V>,
    /// See `dst`.
    pub dst_of: Vec<usize>,
}

#[doc(hidden)]
impl<V> CorruptedPairs<V> {
    /// Of each of `positives` pairs, `tails.0` pairs with its source and `heads.0` with its destination; with the nodes
    /// drawn for all pairs, and whether each pair is strict.
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
    /// `k` pairs for each of `positives` pairs, of which both nodes were drawn.
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
