//! Samples random walks: uniform, weighted, along metapaths, and before the times of their starts.
//!
//! Walks are independent, so that they run in parallel. The draws of a walk are keyed by its start and its number.
//! Uniform steps need one random number, weighted steps one alias draw: `O(1)` for a node of any degree. Steps before a
//! time need a binary search.

use std::fmt::Display;

use rayon::prelude::*;

use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::{SeedKind, Seeds};
use crate::random::generator::Draws;
use crate::random::key::SampleKey;
use crate::walk::step_edges::StepEdges;
use burn_gnn_graph::internal::{check_len, check_nodes, filled, setting};
use burn_gnn_graph::{Compressed, EdgeKey, Graph, GraphError, Schema, Stream};

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
/// With [`with_times`](Self::with_times), every start has a time, and a walk takes only edges strictly before the time of
/// its start, as neighbour sampling does without
/// [`with_edges_at_seed_time`](crate::NeighborSampler::with_edges_at_seed_time). For walks that also take edges at the
/// time of the start, give `time + 1`. The times of consecutive steps need not increase. Later edges have no influence: a
/// graph without them gives the same walk.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{RandomWalk, SampleKey};
/// let g = Graph::homogeneous(4, vec![0, 1, 2], vec![1, 2, 3])?; // a path
/// let walks = RandomWalk::new(&g, &["_E"; 2])?.walk(&[0, 2], 1, SampleKey::new(7))?;
/// assert_eq!((walks.walk(0), walks.walk(1)), (&[0, 1, 2][..], &[2, 3][..]));
/// let timed = RandomWalk::new(&g, &["_E"; 2])?.with_times("_E", &[10, 20, 30])?;
/// let walks = timed.walk_before(&[0, 0], &[20, 21], 1, SampleKey::new(7))?;
/// assert_eq!((walks.walk(0), walks.walk(1)), (&[0, 1][..], &[0, 1, 2][..]));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct RandomWalk {
    graph: Graph,
    metapath: Vec<usize>,
    /// Per edge type.
    edges: Vec<StepEdges>,
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
        let edges = vec![StepEdges::default(); graph.relations().len()];
        Ok(Self { graph: graph.clone(), metapath, edges, stop: 0.0, per_start: 1 })
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
        self.edges[t].set_weights(&name, self.graph.in_memory(t)?, weights)?;
        Ok(self)
    }

    /// Sets the time of each edge of a type, by edge id, for [`walk_before`](Self::walk_before). Steps along types without
    /// times take edges of any time.
    ///
    /// Every start of a sampler with times needs a time, in a loader by
    /// [`Seeds::nodes_before`](crate::Seeds::nodes_before).
    ///
    /// # Errors
    /// Unknown type; a number of times other than that of edges; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(edges · log degree)`, and 12 bytes per edge; with weights 8 more.
    pub fn with_times(mut self, etype: impl EdgeKey, times: &[i64]) -> Result<Self, GraphError> {
        let t = self.graph.schema().etype(etype)?;
        let name = self.graph.schema().etypes()[t].to_string();
        self.edges[t].set_times(&name, self.graph.in_memory(t)?, times)?;
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
    /// A start that is not a node of the first type; edges have times, so that starts need times
    /// ([`walk_before`](Self::walk_before)); [`GraphError::OutOfMemory`]; edges in a file that cannot be read.
    ///
    /// # Cost
    /// `O(walks · length)`, in parallel.
    pub fn walk(
        &self,
        starts: &[u32],
        per_start: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        self.walk_of(starts, None, per_start, key)
    }

    /// As [`walk`](Self::walk), but each start has a time, and its walks take only edges strictly before it. A walk ends at
    /// a node without such edges.
    ///
    /// # Errors
    /// As [`walk`](Self::walk); a number of times other than that of starts; no edge has a time
    /// ([`with_times`](Self::with_times)).
    ///
    /// # Cost
    /// `O(walks · length · log degree)`, in parallel.
    pub fn walk_before(
        &self,
        starts: &[u32],
        times: &[i64],
        per_start: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        self.walk_of(starts, Some(times), per_start, key)
    }

    pub(crate) fn walk_of(
        &self,
        starts: &[u32],
        times: Option<&[i64]>,
        per_start: usize,
        key: SampleKey,
    ) -> Result<Walks, GraphError> {
        let starts = Starts { nodes: starts, times, per_start };
        let first = self.metapath[0];
        let name = &self.schema().etypes()[first];
        starts.check(name, self.graph.relations()[first].num_src(), self.is_timed())?;
        let stream = key.stream("random walk");
        // CSR is built here, once, so that workers do not each sort the edges.
        let layouts: Vec<&Compressed> = self
            .metapath
            .iter()
            .map(|&t| Ok(self.graph.in_memory(t)?.csr()))
            .collect::<Result<_, GraphError>>()?;
        run(starts, self.metapath.len(), &stream, |draws, time, path| {
            if self.stop > 0.0 && draws.unit() < self.stop {
                return None;
            }
            let step = path.len() - 1;
            let (csr, edges) = (layouts[step], &self.edges[self.metapath[step]]);
            let p = edges.draw(edges.before(csr.row(path[step] as usize), time), draws)?;
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
        let (nodes, times) = starts_of(seeds, self.first());
        self.walk_of(nodes, times, self.per_start, key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        check_starts(seeds, self.schema().ntypes(), self.first(), self.is_timed())
    }
}

/// The seeds of the type in which walks start, and their times.
pub(crate) fn starts_of(seeds: &Seeds, first: usize) -> (&[u32], Option<&[i64]>) {
    (&seeds.ids()[first], seeds.times().map(|times| &times[first][..]))
}

/// Checks that starts have times exactly if edges have times: otherwise a walk could take edges later than its start.
fn check_times(timed_edges: bool, timed_starts: bool) -> Result<(), GraphError> {
    match (timed_edges, timed_starts) {
        (true, false) => {
            let expected = "a time for every start (`Seeds::nodes_before`, `walk_before`; `i64::MAX` for edges of any time), because the edges of the walks have times";
            Err(setting("times", expected, "none"))
        }
        (false, true) => {
            Err(setting("times", "times of the edges of the walks (`with_times`)", "none"))
        }
        _ => Ok(()),
    }
}

/// Checks that all seeds are nodes of the type in which walks start, with times exactly if edges have times.
pub(crate) fn check_starts(
    seeds: &Seeds,
    ntypes: &[String],
    first: usize,
    timed_edges: bool,
) -> Result<(), GraphError> {
    seeds.expect(SeedKind::Nodes, ntypes.len())?;
    match (0..ntypes.len()).find(|&t| t != first && !seeds.ids()[t].is_empty()) {
        None => check_times(timed_edges, seeds.times().is_some()),
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
    /// Whether the edges of a step have times.
    pub(crate) fn is_timed(&self) -> bool {
        self.metapath.iter().any(|&t| self.edges[t].is_timed())
    }
    /// The node type in which walks start.
    pub(crate) fn first(&self) -> usize {
        self.graph.schema().endpoints(self.metapath[0]).0
    }
}

/// Where walks start.
#[derive(Clone, Copy)]
pub(crate) struct Starts<'a> {
    pub(crate) nodes: &'a [u32],
    /// Time of each node.
    pub(crate) times: Option<&'a [i64]>,
    /// Number of walks from each node.
    pub(crate) per_start: usize,
}

impl Starts<'_> {
    /// Checks nodes, which are sources of the edge type `name` with `num_src` sources, and times.
    pub(crate) fn check(
        &self,
        name: &dyn Display,
        num_src: usize,
        timed_edges: bool,
    ) -> Result<(), GraphError> {
        check_nodes("starts", self.nodes, num_src).map_err(|e| e.in_relation(&name.to_string()))?;
        check_times(timed_edges, self.times.is_some())?;
        let times = self.times.map_or(self.nodes.len(), <[i64]>::len);
        check_len("times", "one per start", self.nodes.len(), times)
    }
}

/// Runs all walks from checked starts. `step` gets the time of the start and the nodes of the walk so far, and returns the next node and the
/// edge to it, or `None` to end the walk.
pub(crate) fn run(
    Starts { nodes: starts, times, per_start }: Starts<'_>,
    length: usize,
    stream: &Stream,
    step: impl Fn(&mut Draws<'_>, Option<i64>, &[u32]) -> Option<(u32, u32)> + Sync,
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
        let time = times.map(|times| times[i / per_start]);
        nodes[0] = start;
        for at in 0..length {
            match step(&mut draws, time, &nodes[..=at]) {
                Some((v, e)) => (nodes[at + 1], edges[at]) = (v, e),
                None => break,
            }
        }
    });
    Ok(Walks { nodes, edges, length })
}

impl SampledBatch for Walks {
    type Id = u32;
}
