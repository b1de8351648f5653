//! Samples second-order random walks (node2vec).
//!
//! # Algorithm
//! ```text
//! step:  repeat p = first-order draw in the out-edges of v; accept it with probability α / max α   # 1
//!        after degree + 64 rejections: exact draw over all neighbours                              # 2
//! ```
//!
//! 1. node2vec weighs a neighbour by the previous node, so that a table per pair of nodes would need `O(Σ degree²)`
//!    memory. Rejection needs none: one first-order draw and one edge look-up, by binary search (KnightKing, SOSP 2019).
//! 2. The bound keeps extreme `p` and `q` from looping. The exact draw has the same distribution.

use std::ops::Range;
use std::sync::Arc;

use crate::batch::sampler::Sampler;
use crate::batch::seeds::Seeds;
use crate::negative::adjacency::Adjacency;
use crate::random::generator::Draws;
use crate::random::key::SampleKey;
use crate::walk::random_walk::{Starts, Walks, check_starts, run, starts_of};
use crate::walk::step_edges::StepEdges;
use burn_gnn_graph::internal::setting;
use burn_gnn_graph::{EdgeKey, Graph, GraphError, Relation, Schema};

/// Samples second-order random walks (node2vec: Grover and Leskovec, KDD 2016). A walk that came from `t` to `v`
/// continues to `x` with probability proportional to `α(t, x) · w(v, x)`, where `α` is `1 / p` if `x = t`, 1 if there is
/// an edge `x -> t`, and `1 / q` otherwise.
///
/// In a directed graph, `α` depends on the edge from the next node to the previous one, as in the authors' program and
/// in DGL's `node2vec_random_walk`. (The paper defines `d(t, x) = 1` for undirected graphs.)
///
/// Steps are drawn by rejection (KnightKing: Yang et al., SOSP 2019). The cost of a step does not depend on the degree:
/// it takes at most `max α / min α` draws on average. After `degree + 64` rejected draws the step is drawn exactly from
/// all neighbours, which has the same distribution.
///
/// With [`with_times`](Self::with_times), every start has a time, and a walk takes only edges strictly before it, as those
/// of [`RandomWalk`](crate::RandomWalk) do; `α` depends on such edges only.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{Node2Vec, SampleKey};
/// let g = Graph::homogeneous(4, vec![0, 1, 2, 3], vec![1, 2, 3, 0])?; // a directed cycle
/// let walks = Node2Vec::new(&g, "_E", 0.5, 2.0)?.walk(&[0, 2], 1, 3, SampleKey::new(7))?;
/// assert_eq!((walks.walk(0), walks.walk(1)), (&[0, 1, 2, 3][..], &[2, 3, 0, 1][..]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct Node2Vec {
    schema: Arc<Schema>,
    etype: usize,
    relation: Relation,
    name: String,
    adjacency: Adjacency,
    edges: StepEdges,
    /// `α` of the previous node, of nodes with an edge to it, and of other nodes, scaled so that the largest is finite.
    back: f64,
    near: f64,
    away: f64,
    /// Settings for loaders.
    length: usize,
    per_start: usize,
}

impl Node2Vec {
    /// A sampler with return parameter `p` and in-out parameter `q`.
    ///
    /// # Errors
    /// Unknown type; an edge type between different node types; parameters that are not positive and finite; edges in a
    /// file that cannot be read.
    pub fn new(graph: &Graph, etype: impl EdgeKey, p: f64, q: f64) -> Result<Self, GraphError> {
        let t = graph.one_node_type(etype, "node2vec")?;
        for (arg, value) in [("p", p), ("q", q)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(setting(arg, "a positive number", &value.to_string()));
            }
        }
        let relation = graph.relations()[t].clone();
        relation.read_stored().map_err(|e| graph.in_etype(t, e))?;
        let (name, adjacency) =
            (graph.schema().etypes()[t].to_string(), Adjacency::new(&relation, false, false, None));
        // `1 / p` is infinite for a subnormal `p`.
        let near = if p.recip().is_finite() && q.recip().is_finite() { 1.0 } else { p.min(q) };
        Ok(Self {
            schema: graph.schema().clone(),
            etype: t,
            relation,
            name,
            adjacency,
            edges: StepEdges::default(),
            back: near / p,
            near,
            away: near / q,
            length: 0,
            per_start: 1,
        })
    }

    /// Sets weights, by edge id.
    ///
    /// # Errors
    /// A number of weights other than that of edges; a weight that is negative, infinite or NaN.
    pub fn with_weights(mut self, weights: &[f32]) -> Result<Self, GraphError> {
        self.edges.set_weights(&self.name, &self.relation, weights)?;
        Ok(self)
    }

    /// Sets the time of each edge, by edge id, for [`walk_before`](Self::walk_before). Every start of a sampler with times
    /// needs a time, in a loader by [`Seeds::nodes_before`](crate::Seeds::nodes_before).
    ///
    /// # Errors
    /// A number of times other than that of edges.
    ///
    /// # Cost
    /// `O(edges · log degree)`, and 24 bytes per edge; with weights 8 more.
    pub fn with_times(mut self, times: &[i64]) -> Result<Self, GraphError> {
        self.edges.set_times(&self.name, &self.relation, times)?;
        self.adjacency = Adjacency::new(&self.relation, false, false, Some(times));
        Ok(self)
    }

    /// Sets the number of steps of each walk in the batches of a [`Loader`](crate::Loader).
    #[must_use]
    pub fn with_length(mut self, length: usize) -> Self {
        self.length = length;
        self
    }
    /// Sets the number of walks from each seed in the batches of a [`Loader`](crate::Loader); 1 by default.
    #[must_use]
    pub fn with_walks_per_start(mut self, per_start: usize) -> Self {
        self.per_start = per_start;
        self
    }

    /// Samples `per_start` walks of `length` steps from each start.
    ///
    /// # Errors
    /// A start out of range; a length of 0; edges have times, so that starts need times
    /// ([`walk_before`](Self::walk_before)); [`GraphError::OutOfMemory`].
    pub fn walk(
        &self,
        starts: &[u32],
        per_start: usize,
        length: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        self.walk_of(Starts { nodes: starts, times: None, per_start }, length, key)
    }

    /// As [`walk`](Self::walk), but each start has a time, and its walks take only edges strictly before it. A walk ends at
    /// a node without such edges.
    ///
    /// # Errors
    /// As [`walk`](Self::walk); a number of times other than that of starts; edges without times
    /// ([`with_times`](Self::with_times)).
    pub fn walk_before(
        &self,
        starts: &[u32],
        times: &[i64],
        per_start: usize,
        length: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        self.walk_of(Starts { nodes: starts, times: Some(times), per_start }, length, key)
    }

    fn walk_of(
        &self,
        starts: Starts<'_>,
        length: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        starts.check(&self.name, self.relation.num_src(), self.edges.is_timed())?;
        if length == 0 {
            return Err(setting("length", "at least one step", "0"));
        }
        let most = self.back.max(self.away).max(self.near);
        let csr = self.relation.csr();
        let stream = key.stream("node2vec");
        run(starts, length, &stream, |draws, time, path| {
            let step = path.len() - 1;
            let places = self.edges.before(csr.row(path[step] as usize), time);
            for _ in 0..places.len() + SPARE_DRAWS {
                let p = self.edges.draw(places.clone(), draws)?;
                let x = csr.indices()[p];
                let bias = if step == 0 { most } else { self.bias(path[step - 1], x, time) };
                if draws.unit() * most < bias {
                    return Some((x, csr.edge_id(p)));
                }
            }
            // Only later steps reach this: the first one accepts its first draw.
            let p = self.weigh(path[step - 1], places, time, draws)?;
            Some((csr.indices()[p], csr.edge_id(p)))
        })
    }

    /// `α` of `x` for a walk that came from `before`.
    fn bias(&self, before: u32, x: u32, time: Option<i64>) -> f64 {
        if x == before {
            return self.back;
        }
        let is_edge = match time {
            // The adjacency contains edges up to a time, walks take those strictly before it.
            Some(time) => time
                .checked_sub(1)
                .is_some_and(|last| self.adjacency.contains(x, before, Some(last))),
            None => self.adjacency.contains(x, before, None),
        };
        if is_edge { self.near } else { self.away }
    }

    /// Draws the position of an edge in proportion to `α · w`, in `O(degree)`.
    fn weigh(
        &self,
        before: u32,
        places: Range<usize>,
        time: Option<i64>,
        draws: &mut Draws<'_>,
    ) -> Option<usize> {
        let indices = self.relation.csr().indices();
        let mut sums = self.edges.shares(places.clone());
        let mut total = 0.0;
        for (sum, place) in sums.iter_mut().zip(places.clone()) {
            total += *sum * self.bias(before, indices[self.edges.position(place)], time);
            *sum = total;
        }
        // An `α` may underflow to 0 compared with the others. If all neighbours have it, they are equally likely.
        if total <= 0.0 {
            return self.edges.draw(places, draws);
        }
        let at = draws.unit() * total;
        let drawn = sums.partition_point(|&sum| sum <= at);
        // Rounding may place the draw at the sum: it goes to the last position with a positive weight.
        let last = sums.partition_point(|&sum| sum < total);
        Some(self.edges.position(places.start + drawn.min(last)))
    }
}

/// Rejected draws, in addition to the degree, before the exact draw.
const SPARE_DRAWS: usize = 64;

/// Batches of walks. [`Node2Vec::with_length`] sets the number of steps, [`Node2Vec::with_walks_per_start`] the number
/// of walks from each seed.
impl Sampler for Node2Vec {
    type Seed = u32;
    type Batch = Walks;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Walks, GraphError> {
        self.check(seeds)?;
        let (nodes, times) = starts_of(seeds, self.schema.endpoints(self.etype).0);
        self.walk_of(Starts { nodes, times, per_start: self.per_start }, self.length, key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        if self.length == 0 {
            return Err(setting("length", "at least one step (`Node2Vec::with_length`)", "0"));
        }
        let first = self.schema.endpoints(self.etype).0;
        check_starts(seeds, self.schema.ntypes(), first, self.edges.is_timed())
    }
}
