//! Pairs of nodes without an edge.

use std::collections::HashSet;

use super::SampleKey;
use super::adjacency::Adjacency;
use super::alias::AliasTables;
use super::draws::Draws;
use super::neighbor::check_weights;
use crate::memory::room;
use crate::relation::{check_len, check_nodes};
use crate::{EdgeKey, Graph, GraphError, Relation};

/// How likely a node is drawn as the destination of a negative pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NegativeBy {
    /// All alike.
    #[default]
    Uniform,
    /// In proportion to its in-degree in the relation.
    InDegree,
    /// In proportion to a weight per destination node.
    Weights(Vec<f32>),
}

/// Pairs drawn as negatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negatives {
    /// Sources.
    pub src: Vec<u32>,
    /// Destinations.
    pub dst: Vec<u32>,
    /// Whether a pair is known to have no edge (and, where asked for, to be met once): false for the padding of a
    /// source that has too few such pairs, and everywhere if the sampler is not strict.
    pub is_strict: Vec<bool>,
}

impl Negatives {
    /// No pairs, with room for so many.
    fn with_room(pairs: u128) -> Result<Self, GraphError> {
        let (what, remedy) = (|| format!("{pairs} negative pairs"), "ask for fewer at a time");
        // A pair takes 9 bytes here and 8 while those of its source are drawn.
        room::<[u8; 17]>(pairs, what, remedy)?;
        Ok(Self { src: room(pairs, what, remedy)?, dst: room(pairs, what, remedy)?, is_strict: room(pairs, what, remedy)? })
    }
}

/// Draws pairs of nodes that have no edge of a relation, as negative examples of link prediction.
///
/// Strict by default: a pair is never an edge, over the exact range of destinations, without leaving any out. The number
/// asked for always comes back; where there are not enough such pairs the rest is drawn from all, and
/// [`Negatives::is_strict`] says so.
///
/// ```
/// use burn_gnn_graph::{Graph, NegativeSampler, SampleKey};
/// let g = Graph::homogeneous(4, vec![0, 0, 1], vec![0, 1, 2])?;
/// let sampler = NegativeSampler::new(&g, "_E")?;
/// let n = sampler.per_source(&[0], &[1], 3, SampleKey::new(7))?; // three for the edge 0 -> 1
/// assert_eq!(n.src, [0, 0, 0]);
/// assert!(n.dst.iter().all(|v| [2, 3].contains(v)) && n.is_strict == [true; 3]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Cost
/// `O(log degree)` per uniform pair. Other pairs are drawn until one fits, 32 times at most, then chosen exactly in `O(V)`.
/// The sampler keeps the edges once more, 4 bytes each.
#[derive(Debug)]
pub struct NegativeSampler {
    name: String,
    relation: Relation,
    adjacency: Adjacency,
    by: NegativeBy,
    weights: Option<(Vec<f32>, AliasTables)>,
    strict: bool,
    unique: bool,
    shared: bool,
    conditions: Vec<Condition>,
}

/// Nodes with equal values of one attribute.
#[derive(Debug)]
struct Condition {
    values: Vec<i64>,
    /// Nodes by value, then by id.
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

/// Draws that may fail before all candidates are looked at.
const TRIES: usize = 32;

impl NegativeSampler {
    /// Strict and uniform.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn new(graph: &Graph, etype: impl EdgeKey) -> Result<Self, GraphError> {
        let t = graph.schema().etype(etype)?;
        let relation = graph.relations()[t].clone();
        Ok(Self {
            name: graph.schema().etypes()[t].to_string(),
            adjacency: Adjacency::new(&relation, false),
            relation,
            by: NegativeBy::Uniform,
            weights: None,
            strict: true,
            unique: false,
            shared: false,
            conditions: vec![],
        })
    }

    /// How destinations are drawn.
    ///
    /// # Errors
    /// Not one weight per destination, weights that are negative, infinite or NaN, or all 0.
    pub fn with_distribution(mut self, by: NegativeBy) -> Result<Self, GraphError> {
        let weights = match &by {
            NegativeBy::Uniform => None,
            NegativeBy::InDegree => Some(self.relation.in_degrees().map(|d| d as f32).collect()),
            NegativeBy::Weights(w) => Some(w.clone()),
        };
        if let Some(weights) = weights {
            let n = self.relation.num_dst();
            check_len("weights", "one per destination node", n, weights.len()).map_err(|e| e.in_relation(&self.name))?;
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

    /// Whether pairs that are edges are refused (the default) or drawn like others.
    #[must_use]
    pub fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Whether self loops count as edges, so that a node is never paired with itself.
    ///
    /// # Errors
    /// The relation joins two node types.
    pub fn without_self_loops(mut self) -> Result<Self, GraphError> {
        if self.relation.num_src() != self.relation.num_dst() {
            return Err(GraphError::Bipartite { relation: self.name, op: "leaving out self loops" });
        }
        self.adjacency = Adjacency::new(&self.relation, true);
        Ok(self)
    }

    /// Whether the negatives of one positive pair (or of one call of [`global`](Self::global)) all differ.
    #[must_use]
    pub fn with_unique(mut self, unique: bool) -> Self {
        self.unique = unique;
        self
    }

    /// Whether all positive pairs of a call get the same destinations. They are drawn without regard to edges;
    /// [`Negatives::is_strict`] tells which pairs have none.
    #[must_use]
    pub fn with_batch_shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// Conditional negatives: this share of the negatives of a positive pair has the positive destination's value of an
    /// attribute, given for each destination node. May be called for several attributes; what shares leave over is
    /// unconditional. Of `k` negatives, attribute `i` gets those from `round(k · s)` to `round(k · (s + share))`, where `s` is
    /// the sum of the shares before.
    ///
    /// # Errors
    /// Not one value per destination, a share outside `0.0..=1.0`, shares that sum to more than 1.
    pub fn with_condition(mut self, values: &[i64], share: f64) -> Result<Self, GraphError> {
        let n = self.relation.num_dst();
        check_len("values", "one per destination node", n, values.len()).map_err(|e| e.in_relation(&self.name))?;
        let sum: f64 = self.conditions.iter().map(|c| c.share).sum();
        if !(0.0..=1.0).contains(&share) || sum + share > 1.0 + 1e-9 {
            return Err(setting("share", &format!("a number in 0.0..={}", 1.0 - sum), &share.to_string()));
        }
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by_key(|&v| values[v as usize]);
        self.conditions.push(Condition { values: values.to_vec(), order, share });
        Ok(self)
    }

    /// `k` negatives for each positive pair `src[i] -> dst[i]`, with its source: entries `i * k..(i + 1) * k`.
    ///
    /// Draws are functions of the key and the pair: equal pairs get equal negatives.
    ///
    /// # Errors
    /// Lists of different lengths, ids out of range, no destination nodes; [`GraphError::OutOfMemory`].
    pub fn per_source(&self, src: &[u32], dst: &[u32], k: usize, key: SampleKey) -> Result<Negatives, GraphError> {
        let named = |e: GraphError| e.in_relation(&self.name);
        check_len("dst", "one per entry of `src`", src.len(), dst.len()).map_err(named)?;
        check_nodes("src", src, self.relation.num_src()).map_err(named)?;
        check_nodes("dst", dst, self.relation.num_dst()).map_err(named)?;
        let stream = key.stream(&format!("negatives/{}", self.name));
        let mut out = Negatives::with_room((src.len() as u128).saturating_mul(k as u128))?;
        if self.shared && !src.is_empty() {
            let mut draws = Draws::new(&stream, u64::MAX);
            let shared = self.some(None, dst[0], k, &mut draws);
            for &u in src {
                for &(v, met_once) in &shared {
                    out.push(u, v, self.strict && met_once && !self.adjacency.contains(u, v));
                }
            }
            return Ok(out);
        }
        for (&u, &v) in src.iter().zip(dst) {
            let mut draws = Draws::new(&stream, u64::from(u) << 32 | u64::from(v));
            let forbidden = self.strict.then_some(u);
            self.some(forbidden, v, k, &mut draws).into_iter().for_each(|(v, strict)| out.push(u, v, strict && self.strict));
        }
        Ok(out)
    }

    /// `count` pairs out of all that have no edge, each equally likely (GraphBolt and DGL: global uniform).
    ///
    /// # Errors
    /// The sampler is not uniform, or has conditions; the relation has no pair of nodes; [`GraphError::OutOfMemory`].
    pub fn global(&self, count: usize, key: SampleKey) -> Result<Negatives, GraphError> {
        if self.by != NegativeBy::Uniform || !self.conditions.is_empty() {
            return Err(setting("distribution", "uniform pairs without conditions", "another; draw per source"));
        }
        let (n, m) = (self.relation.num_src() as u64, self.relation.num_dst() as u64);
        if n * m == 0 && count > 0 {
            return Err(setting("count", "0, as the relation has no pair of nodes", &count.to_string()));
        }
        // Pairs without an edge before each source.
        let mut before = vec![0u64];
        if self.strict {
            let mut sum = 0;
            before.extend((0..n as u32).map(|u| {
                sum += m - self.adjacency.row(u).len() as u64;
                sum
            }));
        }
        let total = if self.strict { before[n as usize] } else { n * m };
        let stream = key.stream(&format!("global negatives/{}", self.name));
        let (mut met, mut out) = (HashSet::new(), Negatives::with_room(count as u128)?);
        for i in 0..count as u64 {
            let mut draws = Draws::new(&stream, i);
            // Floyd's way to ranks that all differ: see `Chooser::distinct`.
            let top = if self.unique { (total + i).checked_sub(count as u64).map(|top| top + 1) } else { Some(total) };
            let rank = top.filter(|&top| top > 0).map(|top| {
                let rank = draws.below_wide(top);
                if self.unique && !met.insert(rank) {
                    met.insert(top - 1);
                    top - 1
                } else {
                    rank
                }
            });
            match rank {
                Some(rank) if self.strict => {
                    let u = before.partition_point(|&b| b <= rank) - 1;
                    out.push(u as u32, self.adjacency.outside(u as u32, (rank - before[u]) as u32), true);
                }
                rank => {
                    let rank = rank.unwrap_or_else(|| draws.below_wide(n * m));
                    out.push((rank / m) as u32, (rank % m) as u32, false);
                }
            }
        }
        Ok(out)
    }

    /// The edges that negatives are none of.
    pub(crate) fn relation(&self) -> &Relation {
        &self.relation
    }

    /// `k` destinations that are not those of `forbidden`, and whether each is what was asked for.
    fn some(&self, forbidden: Option<u32>, positive: u32, k: usize, draws: &mut Draws<'_>) -> Vec<(u32, bool)> {
        let n = self.relation.num_dst() as u32;
        let is_edge = |v: u32| forbidden.is_some_and(|u| self.adjacency.contains(u, v));
        let mut out: Vec<(u32, bool)> = Vec::with_capacity(k);
        if self.by == NegativeBy::Uniform && self.conditions.is_empty() {
            let left = n - forbidden.map_or(0, |u| self.adjacency.row(u).len() as u32);
            let node = |rank| forbidden.map_or(rank, |u| self.adjacency.outside(u, rank));
            let fits = if self.unique {
                k.min(left as usize)
            } else if left > 0 {
                k
            } else {
                0
            };
            if self.unique {
                super::choose::Chooser::default().distinct(draws, left, fits as u32, |rank| out.push((node(rank), true)));
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
            let found = (0..TRIES).map(|_| draw(draws)).find(|&v| fits(v)).or_else(|| self.exactly(alike, fits, draws));
            out.push(found.map_or_else(|| (draw(draws), false), |v| (v, true)));
        }
        out
    }

    /// One of all candidates that fit, in proportion to their weights.
    fn exactly(&self, alike: Option<&[u32]>, fits: impl Fn(u32) -> bool, draws: &mut Draws<'_>) -> Option<u32> {
        let weight = |v: u32| match (alike, &self.weights) {
            (None, Some((w, _))) => f64::from(w[v as usize]),
            _ => 1.0,
        };
        let all = || -> Box<dyn Iterator<Item = u32> + '_> {
            match alike {
                Some(nodes) => Box::new(nodes.iter().copied().filter(|&v| fits(v))),
                None => Box::new((0..self.relation.num_dst() as u32).filter(|&v| fits(v))),
            }
        };
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
    fn push(&mut self, u: u32, v: u32, strict: bool) {
        self.src.push(u);
        self.dst.push(v);
        self.is_strict.push(strict);
    }
}

/// A setting that cannot be.
pub(crate) fn setting(arg: &'static str, expected: &str, found: &str) -> GraphError {
    GraphError::Setting { arg, expected: expected.to_owned(), found: found.to_owned() }
}
