//! Defines `NegativeSampler`, and draws the negatives of positive pairs.
//!
//! # Algorithm
//! A strict negative of source `u` is a destination without an edge from `u`. The adjacency lists the distinct
//! destinations of each source in ascending order.
//!
//! ```text
//! uniform:      free = num_dst - degree(u)                       # destinations without an edge from u
//!               rank = below(free)                               # unique: Floyd's algorithm over 0..free
//!               v = the rank-th destination outside adjacency[u]                                       # 1
//! weighted,     repeat 32 times: v = alias draw, or a node of the same attribute value                 # 2
//! conditional:      stop if v is no edge (and new, if unique)
//!               otherwise: one exact draw over all destinations that qualify                           # 3
//! global:       rank = below(free pairs); u by binary search in the counts, then v as above            # 4
//! no candidate: v = any draw, and is_strict = false
//! ```
//!
//! 1. The number of destinations outside the list below an entry grows along the list, so that a binary search finds
//!    the destination of a rank: `O(log degree)`, exact for any density, and without rejection.
//! 2. Ranks are uniform, so that other distributions use rejection. In sparse graphs the first draw nearly always
//!    qualifies.
//! 3. The bound of 32 draws keeps nodes with an edge to almost every destination from looping.
//! 4. Global negatives draw both endpoints at once: all free pairs are equally likely, not all sources.

use std::borrow::Cow;
use std::sync::Arc;

use crate::negative::adjacency::{Adjacency, outside};
use crate::random::alias::{AliasTables, check_weights};
use crate::random::generator::Draws;
use crate::random::key::SampleKey;
use crate::random::subset::Chooser;
use burn_gnn_graph::internal::{check_len, check_nodes, room, setting};
use burn_gnn_graph::{EdgeKey, Graph, GraphError, Relation, Stream};

/// Distribution of the drawn endpoint of a negative pair: the destination, or the source for
/// [`NegativeSampler::of_sources`].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NegativeBy {
    /// All nodes are equally likely.
    #[default]
    Uniform,
    /// Probabilities are proportional to in-degrees in the relation.
    InDegree,
    /// Probabilities are proportional to a weight per node.
    Weights(Vec<f32>),
}

/// Sampled negative pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negatives {
    /// Sources.
    pub src: Vec<u32>,
    /// Destinations.
    pub dst: Vec<u32>,
    /// Whether a pair is guaranteed to have no edge, and to be distinct if the sampler is unique. False for the padding of
    /// a source with too few such pairs, and for all pairs if the sampler allows
    /// [false negatives](NegativeSampler::with_false_negatives).
    pub is_strict: Vec<bool>,
}

impl Negatives {
    /// Empty lists with capacity for that many pairs.
    #[doc(hidden)]
    pub fn with_room(pairs: u128) -> Result<Self, GraphError> {
        let (what, remedy) = (|| format!("{pairs} negative pairs"), "sample fewer pairs per call");
        // 9 bytes per pair here, and 8 while the pairs of its source are drawn.
        room::<[u8; 17]>(pairs, what, remedy)?;
        Ok(Self {
            src: room(pairs, what, remedy)?,
            dst: room(pairs, what, remedy)?,
            is_strict: room(pairs, what, remedy)?,
        })
    }
}

/// Samples pairs of nodes without an edge of a relation, as negative examples for link prediction.
///
/// By default negatives are strict: no pair is an edge, and every other pair can be drawn. The requested number of pairs
/// is always returned. If too few pairs qualify, the rest is drawn from all pairs and marked in
/// [`Negatives::is_strict`].
///
/// [`new`](Self::new) replaces the destinations of positive pairs (corrupted tails), [`of_sources`](Self::of_sources)
/// their sources (corrupted heads).
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NegativeSampler, SampleKey};
/// let g = Graph::homogeneous(4, vec![0, 0, 1], vec![0, 1, 2])?;
/// let sampler = NegativeSampler::new(&g, "_E")?;
/// let n = sampler.per_source(&[0], &[1], 3, SampleKey::new(7))?; // three for the edge 0 -> 1
/// assert_eq!(n.src, [0, 0, 0]);
/// assert!(n.dst.iter().all(|v| [2, 3].contains(v)) && n.is_strict == [true; 3]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// `O(log degree)` per uniform pair. Other distributions draw until a pair qualifies, at most 32 times, and then choose
/// exactly in `O(V)`. The sampler keeps a copy of the edges, 4 bytes per edge, or 12 with times.
#[derive(Debug)]
pub struct NegativeSampler {
    pub(super) name: String,
    /// The edges, reversed if sources are drawn, so that the drawn nodes are always its destinations.
    pub(super) relation: Relation,
    pub(super) of_sources: bool,
    pub(super) adjacency: Adjacency,
    /// Time of each edge by id, if strict negatives depend on times.
    pub(super) times: Option<Arc<[i64]>>,
    /// Whether self loops count as edges.
    pub(super) diagonal: bool,
    pub(super) by: NegativeBy,
    pub(super) weights: Option<(Vec<f32>, AliasTables)>,
    pub(super) strict: bool,
    pub(super) unique: bool,
    pub(super) shared: bool,
    /// Whether `(u, v)` and `(v, u)` are the same pair.
    pub(super) undirected: bool,
    /// Whether both endpoints have the same node type.
    pub(super) one_type: bool,
    pub(super) conditions: Vec<Condition>,
}

/// Groups of nodes with equal values of one attribute.
#[derive(Debug)]
pub(super) struct Condition {
    values: Vec<i64>,
    /// Nodes sorted by value, then by id.
    order: Vec<u32>,
    share: f64,
}

impl Condition {
    fn alike(&self, v: u32) -> &[u32] {
        let value = self.values[v as usize];
        let from = self.order.partition_point(|&u| self.values[u as usize] < value);
        let rest = &self.order[from..];
        &rest[..rest.partition_point(|&u| self.values[u as usize] == value)]
    }
}

impl NegativeSampler {
    /// Rejected draws before the exact draw.
    #[doc(hidden)]
    pub const TRIES: usize = 32;

    /// A strict, uniform sampler of destinations.
    ///
    /// # Errors
    /// Unknown or ambiguous type; edges in a file that cannot be read.
    pub fn new(graph: &Graph, etype: impl EdgeKey) -> Result<Self, GraphError> {
        Self::on(graph, graph.schema().etype(etype)?, false, None)
    }

    /// A strict, uniform sampler of sources. Settings of destinations apply to sources. Sample pairs by
    /// [`per_destination`](Self::per_destination).
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NegativeSampler, SampleKey};
    /// let g = Graph::homogeneous(4, vec![0, 0, 1], vec![0, 1, 1])?;
    /// let n = NegativeSampler::of_sources(&g, "_E")?.per_destination(&[0], &[1], 3, SampleKey::new(7))?; // three for the edge 0 -> 1
    /// assert_eq!(n.dst, [1, 1, 1]);
    /// assert!(n.src.iter().all(|u| [2, 3].contains(u)));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn of_sources(graph: &Graph, etype: impl EdgeKey) -> Result<Self, GraphError> {
        Self::on(graph, graph.schema().etype(etype)?, true, None)
    }

    /// A strict, uniform sampler for edge type `t`. `times` are the times of the edges, by id.
    pub(crate) fn on(
        graph: &Graph,
        t: usize,
        of_sources: bool,
        times: Option<&Arc<[i64]>>,
    ) -> Result<Self, GraphError> {
        graph.in_memory(t)?;
        Ok(Self::on_read(graph, t, of_sources, times))
    }

    /// [`on`](Self::on) for a relation whose edges are in memory.
    pub(crate) fn on_read(
        graph: &Graph,
        t: usize,
        of_sources: bool,
        times: Option<&Arc<[i64]>>,
    ) -> Self {
        let relation = &graph.relations()[t];
        let relation = if of_sources { relation.reverse() } else { relation.clone() };
        let (s, d) = graph.schema().endpoints(t);
        Self {
            name: graph.schema().etypes()[t].to_string(),
            adjacency: Adjacency::new(&relation, false, false, times.map(|times| &**times)),
            times: times.cloned(),
            relation,
            of_sources,
            diagonal: false,
            by: NegativeBy::Uniform,
            weights: None,
            strict: true,
            unique: false,
            shared: false,
            undirected: false,
            one_type: s == d,
            conditions: vec![],
        }
    }

    /// Sets the time of each edge, by id. A strict negative of a positive pair with a time has no edge up to that time.
    ///
    /// # Errors
    /// A distribution by in-degree, which counts later edges; a number of times other than that of edges.
    #[doc(hidden)]
    pub fn with_times(mut self, times: &[i64]) -> Result<Self, GraphError> {
        check_degrees(&self.by)?;
        check_len("times", "one per edge", self.relation.num_edges(), times.len())
            .map_err(|e| e.in_relation(&self.name))?;
        self.times = Some(times.into());
        Ok(self.with_adjacency())
    }

    /// Sets the distribution of destinations.
    ///
    /// # Errors
    /// A number of weights other than that of destinations; weights that are negative, infinite, NaN or all 0; in-degrees
    /// if edges have times.
    pub fn with_distribution(mut self, by: NegativeBy) -> Result<Self, GraphError> {
        if self.times.is_some() {
            check_degrees(&by)?;
        }
        let weights = match &by {
            NegativeBy::Uniform => None,
            NegativeBy::InDegree => Some(self.relation.in_degrees().map(|d| d as f32).collect()),
            NegativeBy::Weights(w) => Some(w.clone()),
        };
        if let Some(weights) = weights {
            let n = self.relation.num_dst();
            check_len("weights", "one per destination node", n, weights.len())
                .map_err(|e| e.in_relation(&self.name))?;
            check_weights("weights", || format!("destinations of `{}`", self.name), &weights)?;
            if weights.iter().all(|&w| w == 0.0) {
                return Err(setting("weights", "a weight above 0", "none"));
            }
            let table = AliasTables::single(&weights);
            self.weights = Some((weights, table));
        } else {
            self.weights = None;
        }
        self.by = by;
        Ok(self)
    }

    /// Draws pairs without regard to edges, so that some negatives may be edges (false negatives).
    #[must_use]
    pub fn with_false_negatives(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Treats self loops as edges, so that no strict negative pairs a node with itself.
    ///
    /// # Errors
    /// An edge type between different node types.
    pub fn without_self_loops(mut self) -> Result<Self, GraphError> {
        self.check_one_type("leaving out self loops")?;
        self.diagonal = true;
        Ok(self.with_adjacency())
    }

    /// Treats pairs as undirected, for relations that store each edge in one or in both directions. `(u, v)` counts as an
    /// edge if `(v, u)` is one. [`global`](Self::global) returns each pair from the smaller id to the larger (PyG:
    /// `force_undirected`), so that [unique](Self::with_unique) pairs do not repeat in the other direction.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{NegativeSampler, SampleKey};
    /// let path = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?;
    /// let sampler = NegativeSampler::new(&path, "_E")?.undirected()?.without_self_loops()?.with_unique();
    /// let n = sampler.global(3, SampleKey::new(7))?; // all there are
    /// let mut pairs: Vec<_> = n.src.iter().zip(&n.dst).collect();
    /// pairs.sort();
    /// assert_eq!(pairs, [(&0, &2), (&0, &3), (&1, &3)]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// An edge type between different node types.
    pub fn undirected(mut self) -> Result<Self, GraphError> {
        self.check_one_type("undirected pairs")?;
        self.undirected = true;
        Ok(self.with_adjacency())
    }

    fn check_one_type(&self, op: &'static str) -> Result<(), GraphError> {
        if self.one_type {
            Ok(())
        } else {
            Err(GraphError::Bipartite { relation: self.name.clone(), op })
        }
    }

    /// Rebuilds the adjacency after a change of settings.
    fn with_adjacency(mut self) -> Self {
        let (diagonal, times) = (self.diagonal, self.times.as_deref());
        self.adjacency = Adjacency::new(&self.relation, diagonal, self.undirected, times);
        self
    }

    /// Makes all negatives of one positive pair (or of one call of [`global`](Self::global)) different.
    #[must_use]
    pub fn with_unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Gives all positive pairs of a call the same destinations. These are drawn without regard to edges;
    /// [`Negatives::is_strict`] is true for the pairs without an edge.
    #[must_use]
    pub fn with_batch_shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Adds conditional (hard) negatives: a share of the negatives of a positive pair has the same attribute value as the
    /// positive destination. `values` are the attribute of each destination node. Can be called for several attributes;
    /// the remaining share is unconditional. Of `k` negatives, an attribute gets those from `round(k · s)` to
    /// `round(k · (s + share))`, where `s` is the sum of earlier shares.
    ///
    /// # Errors
    /// A number of values other than that of destinations; a share outside `0.0..=1.0`; shares that sum to more than 1.
    pub fn with_condition(mut self, values: &[i64], share: f64) -> Result<Self, GraphError> {
        let n = self.relation.num_dst();
        check_len("values", "one per destination node", n, values.len())
            .map_err(|e| e.in_relation(&self.name))?;
        let sum: f64 = self.conditions.iter().map(|c| c.share).sum();
        if !(0.0..=1.0).contains(&share) || sum + share > 1.0 + 1e-9 {
            return Err(setting(
                "share",
                &format!("a number in 0.0..={}", 1.0 - sum),
                &share.to_string(),
            ));
        }
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&v| values[v as usize]);
        self.conditions.push(Condition { values: values.to_vec(), order, share });
        Ok(self)
    }

    /// Samples `k` negatives for each positive pair `src[i] -> dst[i]` by replacing its destination. They are the entries
    /// `i * k..(i + 1) * k` of the result.
    ///
    /// Draws are functions of the key and the pair: equal pairs get equal negatives.
    ///
    /// # Errors
    /// A sampler of sources; lists of different lengths; ids out of range; [`GraphError::OutOfMemory`].
    pub fn per_source(
        &self,
        src: &[u32],
        dst: &[u32],
        k: usize,
        key: SampleKey,
    ) -> Result<Negatives, GraphError> {
        self.of_pairs(false, src, dst, None, k, key)
    }

    /// Samples `k` negatives for each positive pair `src[i] -> dst[i]` by replacing its source. They are the entries
    /// `i * k..(i + 1) * k` of the result.
    ///
    /// # Errors
    /// A sampler that was not made by [`of_sources`](Self::of_sources); as [`per_source`](Self::per_source).
    pub fn per_destination(
        &self,
        src: &[u32],
        dst: &[u32],
        k: usize,
        key: SampleKey,
    ) -> Result<Negatives, GraphError> {
        self.of_pairs(true, src, dst, None, k, key)
    }

    /// [`per_source`](Self::per_source) or [`per_destination`](Self::per_destination). With a time per pair, only edges up
    /// to that time count.
    #[doc(hidden)]
    pub fn of_pairs(
        &self,
        of_sources: bool,
        src: &[u32],
        dst: &[u32],
        times: Option<&[i64]>,
        k: usize,
        key: SampleKey,
    ) -> Result<Negatives, GraphError> {
        self.check_kind(of_sources)?;
        let named = |e: GraphError| e.in_relation(&self.name);
        check_len("dst", "one per entry of `src`", src.len(), dst.len()).map_err(named)?;
        let (kept, replaced) = if of_sources { (dst, src) } else { (src, dst) };
        let (arg_kept, arg_replaced) = if of_sources { ("dst", "src") } else { ("src", "dst") };
        check_nodes(arg_kept, kept, self.relation.num_src()).map_err(named)?;
        check_nodes(arg_replaced, replaced, self.relation.num_dst()).map_err(named)?;
        if let Some(times) = times {
            check_len("times", "one per positive pair", src.len(), times.len()).map_err(named)?;
        }
        let time = |i: usize| times.map(|times| times[i]);
        let stream = self.pair_stream(key);
        let mut out = Negatives::with_room((src.len() as u128).saturating_mul(k as u128))?;
        if self.shared && !src.is_empty() {
            let mut draws = Draws::new(&stream, u64::MAX);
            let shared = self.some(&[], replaced[0], k, &mut draws);
            for (i, &u) in kept.iter().enumerate() {
                for &(v, met_once) in &shared {
                    out.push(
                        u,
                        v,
                        self.strict && met_once && !self.adjacency.contains(u, v, time(i)),
                    );
                }
            }
        } else {
            for (i, (&u, &v)) in kept.iter().zip(replaced).enumerate() {
                let mut draws = Draws::new(&stream, u64::from(u) << 32 | u64::from(v));
                let forbidden =
                    if self.strict { self.adjacency.row(u, time(i)) } else { Cow::default() };
                self.some(&forbidden, v, k, &mut draws)
                    .into_iter()
                    .for_each(|(v, strict)| out.push(u, v, strict && self.strict));
            }
        }
        if of_sources {
            std::mem::swap(&mut out.src, &mut out.dst);
        }
        Ok(out)
    }

    /// Random stream keyed by positive pair.
    pub(super) fn pair_stream(&self, key: SampleKey) -> Stream {
        let purpose = if self.of_sources { "negative sources" } else { "negatives" };
        key.stream(&format!("{purpose}/{}", self.name))
    }

    pub(super) fn check_kind(&self, of_sources: bool) -> Result<(), GraphError> {
        let name = |of_sources| {
            if of_sources {
                "a sampler of sources (`NegativeSampler::of_sources`)"
            } else {
                "a sampler of destinations (`NegativeSampler::new`)"
            }
        };
        if of_sources == self.of_sources {
            Ok(())
        } else {
            Err(setting("negatives", name(of_sources), name(self.of_sources)))
        }
    }

    /// Whether this sampler was made for these edges.
    #[doc(hidden)]
    pub fn is_for(&self, relation: &Relation) -> bool {
        if self.of_sources {
            self.relation.reverse().is_same(relation)
        } else {
            self.relation.is_same(relation)
        }
    }
    /// Whether this sampler draws sources, as one made by [`of_sources`](Self::of_sources) does.
    pub fn is_of_sources(&self) -> bool {
        self.of_sources
    }
    /// The edges, reversed if sources are drawn.
    pub(crate) fn relation(&self) -> &Relation {
        &self.relation
    }

    /// Draws `k` destinations outside `forbidden`, with a flag that is false for padding.
    fn some(
        &self,
        forbidden: &[u32],
        positive: u32,
        k: usize,
        draws: &mut Draws<'_>,
    ) -> Vec<(u32, bool)> {
        let n = self.relation.num_dst() as u32;
        let is_edge = |v: u32| forbidden.binary_search(&v).is_ok();
        let mut out: Vec<(u32, bool)> = Vec::with_capacity(k);
        if self.by == NegativeBy::Uniform && self.conditions.is_empty() {
            let left = n - forbidden.len() as u32;
            let node = |rank| outside(forbidden, 0, rank);
            let fits = if self.unique || left == 0 { k.min(left as usize) } else { k };
            if self.unique {
                let take = |rank| out.push((node(rank), true));
                Chooser::default().distinct(draws, left, fits as u32, take);
            } else {
                out.extend((0..fits).map(|_| (node(draws.below(left)), true)));
            }
            out.extend((fits..k).map(|_| (draws.below(n), false)));
            return out;
        }
        let mut shares = 0.0;
        let mut conditions = self.conditions.iter();
        let (mut condition, mut end) = (None, 0);
        for j in 0..k {
            while j >= end {
                condition = conditions.next();
                shares += condition.map_or(1.0, |c| c.share);
                end = if condition.is_some() { (k as f64 * shares).round() as usize } else { k };
            }
            let alike = condition.map(|c| c.alike(positive));
            let draw = |draws: &mut Draws<'_>| match (alike, &self.weights) {
                (Some(nodes), _) => nodes[draws.below(nodes.len() as u32) as usize],
                (None, Some((w, table))) => table.draw(0..w.len(), draws).unwrap_or(0),
                (None, None) => draws.below(n),
            };
            let fits = |v: u32| !(is_edge(v) || self.unique && out.iter().any(|o| o.0 == v));
            let found = (0..Self::TRIES)
                .map(|_| draw(draws))
                .find(|&v| fits(v))
                .or_else(|| self.exactly(alike, fits, draws));
            out.push(found.map_or_else(|| (draw(draws), false), |v| (v, true)));
        }
        out
    }

    /// Draws one of all qualifying destinations in proportion to their weights, in `O(V)`; `None` if there are none.
    fn exactly(
        &self,
        alike: Option<&[u32]>,
        fits: impl Fn(u32) -> bool,
        draws: &mut Draws<'_>,
    ) -> Option<u32> {
        let weight = |v: u32| match (alike, &self.weights) {
            (None, Some((w, _))) => f64::from(w[v as usize]),
            _ => 1.0,
        };
        let count = alike.map_or(self.relation.num_dst(), <[u32]>::len);
        let node = |i: usize| alike.map_or(i as u32, |nodes| nodes[i]);
        let all = || (0..count).map(node).filter(|&v| fits(v));
        let total: f64 = all().map(weight).sum();
        if total <= 0.0 {
            return None;
        }
        let (at, mut sum, mut last) = (draws.unit() * total, 0.0, None);
        for v in all().filter(|&v| weight(v) > 0.0) {
            (sum, last) = (sum + weight(v), Some(v));
            if sum > at {
                break;
            }
        }
        last
    }
}

impl Negatives {
    pub(super) fn push(&mut self, u: u32, v: u32, strict: bool) {
        self.src.push(u);
        self.dst.push(v);
        self.is_strict.push(strict);
    }
}

/// Checks that the distribution does not use in-degrees, which count later edges.
fn check_degrees(by: &NegativeBy) -> Result<(), GraphError> {
    if *by != NegativeBy::InDegree {
        return Ok(());
    }
    let expected = "a uniform distribution or weights, because edges have times and in-degrees include later edges";
    Err(setting("negatives", expected, "NegativeBy::InDegree"))
}
