//! Samples random walks, also along metapaths and by node2vec.

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

/// Stands for "the walk had ended" in [`Walks`].
pub const NO_NODE: u32 = u32::MAX;

/// Walks of equal length, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walks {
    /// `num_walks * (length + 1)` nodes; [`NO_NODE`] after the end of a walk.
    pub nodes: Vec<u32>,
    /// `num_walks * length` edges of the types of the steps; `u32::MAX` after the end of a walk.
    pub edges: Vec<u32>,
    /// Steps of a walk that does not end early.
    pub length: usize,
}

impl Walks {
    /// Number of walks.
    pub fn len(&self) -> usize {
        // A length that no memory has room for is one of no walks.
        self.nodes.len() / self.length.saturating_add(1)
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    /// The nodes that walk `i` met, its start included.
    ///
    /// # Panics
    /// `i` is not below [`len`](Self::len).
    #[track_caller]
    pub fn walk(&self, i: usize) -> &[u32] {
        let nodes = &self.nodes[i * (self.length + 1)..(i + 1) * (self.length + 1)];
        &nodes[..nodes.partition_point(|&v| v != NO_NODE)]
    }
}

/// Walks along out-edges, step `i` along an edge of type `metapath[i]` (DeepWalk: Perozzi et al., KDD 2014;
/// metapath2vec: Dong et al., KDD 2017). A walk ends early at a node without an out-edge, or without one of a weight
/// above 0.
///
/// Draws are functions of the key, the start, the number of the walk from this start, and the step.
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
    /// Uniform steps.
    ///
    /// # Errors
    /// Unknown or ambiguous types; types that do not follow each other; none at all.
    pub fn new<K: EdgeKey>(graph: &Graph, metapath: &[K]) -> Result<Self, GraphError> {
        let metapath = graph.metapath_numbers(metapath, "name an edge type for every step")?;
        let weights = graph.relations().iter().map(|_| None).collect();
        Ok(Self { graph: graph.clone(), metapath, weights, stop: 0.0, per_start: 1 })
    }

    /// Steps along a type in proportion to weights, by edge id.
    ///
    /// # Errors
    /// Unknown type, not one weight per edge, a weight that is negative, infinite or NaN.
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

    /// Probability that a walk ends before each of its steps.
    ///
    /// # Errors
    /// Outside `0.0..=1.0`.
    pub fn with_stop_probability(mut self, stop: f64) -> Result<Self, GraphError> {
        if !(0.0..=1.0).contains(&stop) {
            return Err(setting("stop", "a probability in 0.0..=1.0", &stop.to_string()));
        }
        self.stop = stop;
        Ok(self)
    }

    /// Walks from each start in the batches of a loader, 1 unless it is given.
    #[must_use]
    pub fn with_walks_per_start(mut self, per_start: usize) -> Self {
        self.per_start = per_start;
        self
    }

    /// `per_start` walks from each start, those of one start one after the other.
    ///
    /// # Errors
    /// A start that is not a node of the first type; [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(walks · length)`, shared by all threads.
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

/// Batches of walks: seeds are nodes of the first type, of which each starts as many as
/// [`with_walks_per_start`](RandomWalk::with_walks_per_start) says.
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

/// Walks from the seeds, which are nodes of the type of the walk; how long and how many, [`Node2Vec::with_length`] and
/// [`Node2Vec::with_walks_per_start`] say.
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

/// Refuses seeds that are not nodes of the type in which walks start.
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
            let expected = format!("nodes of `{}`, where walks start", ntypes[first]);
            Err(setting("seeds", &expected, &format!("some of `{}`", ntypes[t])))
        }
    }
}

impl RandomWalk {
    pub(crate) fn schema(&self) -> &Schema {
        self.graph.schema()
    }
    /// The node type of starts.
    pub(crate) fn first(&self) -> usize {
        self.graph.schema().endpoints(self.metapath[0]).0
    }
}

/// Tables for draws of the out-edges of each source, of weights by edge id of the relation called `name`.
fn tables(name: &str, relation: &Relation, weights: &[f32]) -> Result<AliasTables, GraphError> {
    check_len("weights", "one per edge", relation.num_edges(), weights.len())
        .map_err(|e| e.in_relation(name))?;
    check_weights("weights", || format!("edge type `{name}`"), weights)?;
    let csr = relation.csr();
    let by_position: Vec<f32> =
        (0..weights.len()).map(|p| weights[csr.edge_id(p) as usize]).collect();
    Ok(AliasTables::new(csr.indptr(), &by_position))
}

/// A position of a row in proportion to weights, uniform without; `None` where there is none to draw.
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

/// Fills walks; `step` gives the next node and the edge to it, or ends the walk.
fn run(
    starts: &[u32],
    per_start: usize,
    length: usize,
    stream: &Stream,
    step: impl Fn(&mut Draws<'_>, usize, &[u32]) -> Option<(u32, u32)> + Sync,
) -> Result<Walks, GraphError> {
    // The number of a walk from its start is a part of the key of its draws.
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
    let remedy = "ask for fewer walks at a time";
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

/// Second-order walks (node2vec: Grover and Leskovec, KDD 2016): from `t` by way of `v`, the next node `x` is chosen in
/// proportion to `α(t, x) · w(v, x)`, where `α` is `1 / p` for `x = t`, 1 where there is an edge `x -> t`, and `1 / q`
/// otherwise.
///
/// In a directed graph the edge asked for is that from the next node back to the one before, as the authors' program
/// and DGL's `node2vec_random_walk` have it. (The paper's `d(t, x) = 1` is about graphs where both directions are one.)
///
/// Steps are drawn by rejection (KnightKing: Yang et al., SOSP 2019), so high degrees cost nothing and no neighbour is
/// cut off; a step takes at most `max α / min α` draws on average. After as many draws as the node has edges, and 64,
/// the neighbours are weighed instead, which has the same distribution and an end for any `p` and `q`.
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
    /// `α` of the node before, of nodes with an edge to it, and of others, up to a factor that leaves the largest
    /// finite.
    back: f64,
    near: f64,
    away: f64,
    /// As a sampler of a loader.
    length: usize,
    per_start: usize,
}

impl Node2Vec {
    /// Return parameter `p` and in-out parameter `q`.
    ///
    /// # Errors
    /// Unknown type, different source and destination node types, parameters that are not positive and finite; edges in
    /// a file that cannot be read.
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
        // The inverse of a number near 0 is infinite.
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

    /// Weights by edge id.
    ///
    /// # Errors
    /// Not one weight per edge, a weight that is negative, infinite or NaN.
    pub fn with_weights(mut self, weights: &[f32]) -> Result<Self, GraphError> {
        self.weights = Some(tables(&self.name, &self.relation, weights)?);
        Ok(self)
    }

    /// Steps of each walk that a [`Loader`](crate::Loader) asks for.
    #[must_use]
    pub fn with_length(mut self, length: usize) -> Self {
        self.length = length;
        self
    }
    /// Walks from each node that a [`Loader`](crate::Loader) asks for; one unless this is called.
    #[must_use]
    pub fn with_walks_per_start(mut self, per_start: usize) -> Self {
        self.per_start = per_start;
        self
    }

    /// `per_start` walks of `length` steps from each start.
    ///
    /// # Errors
    /// A start out of range; no steps; [`GraphError::OutOfMemory`].
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
            // The first step is taken at the first draw.
            let p = self.weigh(path[step - 1], row, draws)?;
            Some((csr.indices()[p], csr.edge_id(p)))
        })
    }

    /// `α` of `x` where the walk comes from `before`.
    fn bias(&self, before: u32, x: u32) -> f64 {
        if x == before {
            self.back
        } else if self.adjacency.contains(x, before, None) {
            self.near
        } else {
            self.away
        }
    }

    /// A position of a row in proportion to `α · w`, by a look at all of them.
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
        // Where one `α` is so small beside the others that it is 0, a row may have none but it, which are equal then.
        if total <= 0.0 {
            return draw(self.weights.as_ref(), row, draws);
        }
        let at = draws.unit() * total;
        let place = sums.partition_point(|&sum| sum <= at);
        // Rounding may reach the end; the last place with a share is where the sum is reached first.
        Some(
            row.start
                + if place < sums.len() { place } else { sums.partition_point(|&sum| sum < total) },
        )
    }
}

/// Draws by rejection at a node of any degree, before its neighbours are weighed.
const SPARE_DRAWS: usize = 64;

impl SampledBatch for Walks {
    type Id = u32;
}
