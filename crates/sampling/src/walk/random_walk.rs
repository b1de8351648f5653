//! Samples random walks: uniform, weighted, along metapaths, and node2vec.
//!
//! # Algorithm
//! Walks are independent, so that they run in parallel. The draws of a walk are keyed by its start and its number.
//!
//! ```text
//! for walk in walks, in parallel:
//!     v = start
//!     for step in 0..length:
//!         first order:   p = below(degree) or alias draw in the out-edges of v              # 1
//!         second order:  repeat p = first-order draw; accept it with probability α / max α   # 2
//!                        after degree + 64 rejections: exact draw over all neighbours        # 3
//!         v = indices[p]
//! ```
//!
//! 1. Uniform steps need one random number, weighted steps one alias draw: `O(1)` for a node of any degree.
//! 2. node2vec weighs a neighbour by the previous node, so that a table per pair of nodes would need `O(Σ degree²)`
//!    memory. Rejection needs none: one first-order draw and one edge look-up, by binary search (KnightKing, SOSP 2019).
//! 3. The bound keeps extreme `p` and `q` from looping. The exact draw has the same distribution.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::negative::adjacency::Adjacency;
use crate::random::alias::{AliasTables, check_weights};
use crate::random::generator::Draws;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::{check_len, check_nodes, filled, setting};
use burn_gnn_graph::{Compressed, EdgeKey, Graph, GraphError, Relation, Schema, Stream};

/// Entry of [`Walks`] after the end of a walk.
pub const NO_NODE: u32 = u32::MAX;

/// Concatenated walks of equal length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walks {
    /// Nodes, `num_walks * (length + 1)`; [`NO_NODE`] after the end of a walk.
    pub nodes: Vec<u32>,
    /// Edge of each step, `num_walks * length`, as an id of the edge type of the step; `u32::MAX` after the end.
    pub edges: Vec<u32>,
    /// Number of steps of a walk that does not end early.
    pub length: usize,
}

impl Walks {
    /// Number of walks.
    pub fn len(&self) -> usize {
        // `length + 1` overflows only if there are no walks.
        self.nodes.len() / self.length.saturating_add(1)
    }
    /// Whether there are no walks.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    /// The nodes of walk `i`, including its start.
    ///
    /// # Panics
    /// `i` is not below [`len`](Self::len).
    #[track_caller]
    pub fn walk(&self, i: usize) -> &[u32] {
        let nodes = &self.nodes[i * (self.length + 1)..(i + 1) * (self.length + 1)];
        &nodes[..nodes.partition_point(|&v| v != NO_NODE)]
    }
}

/// Samples random walks along out-edges, where step `i` follows an edge of type `metapath[i]` (DeepWalk: Perozzi et
/// al., KDD 2014; metapath2vec: Dong et al., KDD 2017). A walk ends early at a node without out-edges of positive
/// weight.
///
/// Draws are functions of the key, the start, the number of the walk from that start, and the step.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{RandomWalk, SampleKey};
/// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?; // a path
/// let walks = RandomWalk::new(&g, &["_E"; 2])?.walk(&[0, 2], 1, SampleKey::new(7))?;
/// assert_eq!((walks.walk(0), walks.walk(1)), (&[0, 1, 2][..], &[2, 3][..]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct RandomWalk {
    graph: Graph,
    metapath: Vec<usize>,
    /// Per edge type.
    weights: Vec<Option<AliasTables>>,
    stop: f64,
    per_start: usize,
}

impl RandomWalk {
    /// A sampler of uniform steps.
    ///
    /// # Errors
    /// Unknown or ambiguous types; an empty metapath, or one whose types do not connect.
    pub fn new<K: EdgeKey>(graph: &Graph, metapath: &[K]) -> Result<Self, GraphError> {
        let metapath = graph.metapath_numbers(metapath, "name an edge type for every step")?;
        let weights = graph.relations().iter().map(|_| None).collect();
        Ok(Self { graph: graph.clone(), metapath, weights, stop: 0.0, per_start: 1 })
    }

    /// Sets weights for the steps along a type, by edge id.
    ///
    /// # Errors
    /// Unknown type; a number of weights other than that of edges; a weight that is negative, infinite or NaN; edges in a
    /// file that cannot be read.
    pub fn with_weights(
        mut self,
        etype: impl EdgeKey,
        weights: &[f32],
    ) -> Result<Self, GraphError> {
        let t = self.graph.schema().etype(etype)?;
        let name = self.graph.schema().etypes()[t].to_string();
        self.weights[t] = Some(tables(&name, self.graph.in_memory(t)?, weights)?);
        Ok(self)
    }

    /// Sets the probability that a walk ends before a step.
    ///
    /// # Errors
    /// A probability outside `0.0..=1.0`.
    pub fn with_stop_probability(mut self, stop: f64) -> Result<Self, GraphError> {
        if !(0.0..=1.0).contains(&stop) {
            return Err(setting("stop", "a probability in 0.0..=1.0", &stop.to_string()));
        }
        self.stop = stop;
        Ok(self)
    }

    /// Sets the number of walks from each seed in the batches of a loader; 1 by default.
    #[must_use]
    pub fn with_walks_per_start(mut self, per_start: usize) -> Self {
        self.per_start = per_start;
        self
    }

    /// Samples `per_start` walks from each start. The walks of one start are adjacent.
    ///
    /// # Errors
    /// A start that is not a node of the first type; [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(walks · length)`, in parallel.
    pub fn walk(
        &self,
        starts: &[u32],
        per_start: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        let first = self.metapath[0];
        check_nodes("starts", starts, self.graph.relations()[first].num_src())
            .map_err(|e| self.graph.in_etype(first, e))?;
        let stream = key.stream("random walk");
        // CSR is built here, once, so that workers do not each sort the edges.
        let layouts: Vec<&Compressed> = self
            .metapath
            .iter()
            .map(|&t| Ok(self.graph.in_memory(t)?.csr()))
            .collect::<Result<_, GraphError>>()?;
        run(starts, per_start, self.metapath.len(), &stream, |draws, step, path| {
            if self.stop > 0.0 && draws.unit() < self.stop {
                return None;
            }
            let (csr, weights) = (layouts[step], self.weights[self.metapath[step]].as_ref());
            let p = draw(weights, csr.row(path[step] as usize), draws)?;
            Some((csr.indices()[p], csr.edge_id(p)))
        })
    }
}

/// Batches of walks. Seeds are nodes of the first type;
/// [`with_walks_per_start`](RandomWalk::with_walks_per_start) sets the number of walks from each.
impl Sampler for RandomWalk {
    type Seed = u32;
    type Batch = Walks;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Walks, GraphError> {
        self.check(seeds)?;
        self.walk(&seeds.ids()[self.first()], self.per_start, key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        check_starts(seeds, self.schema().ntypes(), self.first())
    }
}

/// Batches of walks. [`Node2Vec::with_length`] sets the number of steps, [`Node2Vec::with_walks_per_start`] the number
/// of walks from each seed.
impl Sampler for Node2Vec {
    type Seed = u32;
    type Batch = Walks;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Walks, GraphError> {
        self.check(seeds)?;
        self.walk(
            &seeds.ids()[self.schema.endpoints(self.etype).0],
            self.per_start,
            self.length,
            key,
        )
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        if self.length == 0 {
            return Err(setting("length", "at least one step (`Node2Vec::with_length`)", "0"));
        }
        check_starts(seeds, self.schema.ntypes(), self.schema.endpoints(self.etype).0)
    }
}

/// Checks that all seeds are nodes of the type in which walks start.
pub(crate) fn check_starts(
    seeds: &Seeds,
    ntypes: &[String],
    first: usize,
) -> Result<(), GraphError> {
    seeds.expect(SeedKind::Nodes, ntypes.len())?;
    seeds.expect_untimed()?;
    match (0..ntypes.len()).find(|&t| t != first && !seeds.ids()[t].is_empty()) {
        None => Ok(()),
        Some(t) => {
            let expected = format!("nodes of `{}`, the start type of the walks", ntypes[first]);
            Err(setting("seeds", &expected, &format!("some of `{}`", ntypes[t])))
        }
    }
}

impl RandomWalk {
    pub(crate) fn schema(&self) -> &Schema {
        self.graph.schema()
    }
    /// The node type in which walks start.
    pub(crate) fn first(&self) -> usize {
        self.graph.schema().endpoints(self.metapath[0]).0
    }
}

/// Builds alias tables over the out-edges of each source. `weights` are by edge id.
fn tables(name: &str, relation: &Relation, weights: &[f32]) -> Result<AliasTables, GraphError> {
    check_len("weights", "one per edge", relation.num_edges(), weights.len())
        .map_err(|e| e.in_relation(name))?;
    check_weights("weights", || format!("edge type `{name}`"), weights)?;
    let csr = relation.csr();
    let by_position: Vec<f32> =
        (0..weights.len()).map(|p| weights[csr.edge_id(p) as usize]).collect();
    Ok(AliasTables::new(csr.indptr(), &by_position))
}

/// Draws a position of a row, in proportion to weights if there are any; `None` if no edge can be drawn.
#[inline]
pub(crate) fn draw(
    weights: Option<&AliasTables>,
    row: Range<usize>,
    draws: &mut Draws<'_>,
) -> Option<usize> {
    let place = match weights {
        Some(table) => table.draw(row.clone(), draws)?,
        None if row.is_empty() => return None,
        None => draws.below(row.len() as u32),
    };
    Some(row.start + place as usize)
}

/// Runs all walks. `step` returns the next node and the edge to it, or `None` to end the walk.
fn run(
    starts: &[u32],
    per_start: usize,
    length: usize,
    stream: &Stream,
    step: impl Fn(&mut Draws<'_>, usize, &[u32]) -> Option<(u32, u32)> + Sync,
) -> Result<Walks, GraphError> {
    // The number of the walk is part of the key of its draws, as 32 bits.
    if per_start as u64 > u64::from(u32::MAX) {
        return Err(setting("per_start", "at most 4294967295 walks", &per_start.to_string()));
    }
    if starts.is_empty() || per_start == 0 {
        return Ok(Walks { nodes: vec![], edges: vec![], length });
    }
    let places = |steps: u128| {
        (starts.len() as u128).saturating_mul(per_start as u128).saturating_mul(steps)
    };
    let what =
        || format!("{per_start} walks of {length} steps from each of {} starts", starts.len());
    let remedy = "sample fewer walks per call";
    let mut nodes = filled(NO_NODE, places(length as u128 + 1), what, remedy)?;
    let mut edges = filled(u32::MAX, places(length as u128), what, remedy)?;
    let walks = nodes
        .par_chunks_mut(length + 1)
        .zip(edges.par_chunks_mut(length))
        .enumerate()
        .with_min_len(64);
    walks.for_each(|(i, (nodes, edges))| {
        let start = starts[i / per_start];
        let mut draws = Draws::new(stream, u64::from(start) | ((i % per_start) as u64) << 32);
        nodes[0] = start;
        for at in 0..length {
            match step(&mut draws, at, &nodes[..=at]) {
                Some((v, e)) => (nodes[at + 1], edges[at]) = (v, e),
                None => break,
            }
        }
    });
    Ok(Walks { nodes, edges, length })
}

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
    weights: Option<AliasTables>,
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
            weights: None,
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
        self.weights = Some(tables(&self.name, &self.relation, weights)?);
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
    /// A start out of range; a length of 0; [`GraphError::OutOfMemory`].
    pub fn walk(
        &self,
        starts: &[u32],
        per_start: usize,
        length: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        check_nodes("starts", starts, self.relation.num_src())
            .map_err(|e| e.in_relation(&self.name))?;
        if length == 0 {
            return Err(setting("length", "at least one step", "0"));
        }
        let most = self.back.max(self.away).max(self.near);
        let csr = self.relation.csr();
        let stream = key.stream("node2vec");
        run(starts, per_start, length, &stream, |draws, step, path| {
            let row = csr.row(path[step] as usize);
            for _ in 0..row.len() + SPARE_DRAWS {
                let p = draw(self.weights.as_ref(), row.clone(), draws)?;
                let x = csr.indices()[p];
                let bias = if step == 0 { most } else { self.bias(path[step - 1], x) };
                if draws.unit() * most < bias {
                    return Some((x, csr.edge_id(p)));
                }
            }
            // Only later steps reach this: the first one accepts its first draw.
            let p = self.weigh(path[step - 1], row, draws)?;
            Some((csr.indices()[p], csr.edge_id(p)))
        })
    }

    /// `α` of `x` for a walk that came from `before`.
    fn bias(&self, before: u32, x: u32) -> f64 {
        if x == before {
            self.back
        } else if self.adjacency.contains(x, before, None) {
            self.near
        } else {
            self.away
        }
    }

    /// Draws a position of a row in proportion to `α · w`, in `O(degree)`.
    fn weigh(&self, before: u32, row: Range<usize>, draws: &mut Draws<'_>) -> Option<usize> {
        let indices = self.relation.csr().indices();
        let mut sums: Vec<f64> = match &self.weights {
            Some(table) => table.shares(row.clone()),
            None => vec![1.0; row.len()],
        };
        let mut total = 0.0;
        for (sum, p) in sums.iter_mut().zip(row.clone()) {
            total += *sum * self.bias(before, indices[p]);
            *sum = total;
        }
        // An `α` may underflow to 0 compared with the others. If all neighbours have it, they are equally likely.
        if total <= 0.0 {
            return draw(self.weights.as_ref(), row, draws);
        }
        let at = draws.unit() * total;
        let place = sums.partition_point(|&sum| sum <= at);
        // Rounding may place the draw at the sum: it goes to the last position with a positive weight.
        Some(
            row.start
                + if place < sums.len() { place } else { sums.partition_point(|&sum| sum < total) },
        )
    }
}

/// Rejected draws, in addition to the degree, before the exact draw.
const SPARE_DRAWS: usize = 64;

impl SampledBatch for Walks {
    type Id = u32;
}
