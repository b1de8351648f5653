//! Samples neighbours by visit counts of random walks (PinSAGE).

use rayon::prelude::*;

use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::Seeds;
use crate::random::key::SampleKey;
use crate::walk::random_walk::{NO_NODE, RandomWalk, check_starts, starts_of};
use burn_gnn_graph::internal::{room, setting};
use burn_gnn_graph::{EdgeKey, Graph, GraphError, Relation};

/// Samples neighbours by importance: for each seed, the nodes of its type that short random walks visit most often
/// (PinSAGE: Ying et al., KDD 2018; DGL's `PinSAGESampler`).
///
/// From each seed, `num_walks` walks traverse `metapath` (item to user and back to item) up to `traversals` times. Before
/// each traversal but the first, a walk ends with probability `stop`. Every traversal that ends in a node counts as a
/// visit of it; the seed itself counts, too. The `num_neighbors` nodes with the most visits become the neighbours. Among
/// equal counts the smaller id wins.
///
/// With [`with_times`](Self::with_times), every seed has a time, and its walks take only edges strictly before it, as
/// those of [`RandomWalk`] do.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{PinSage, SampleKey};
/// let g = Graph::builder()
///     .edges(("item", "bought-by", "user"), vec![0, 1, 1], vec![0, 0, 1])
///     .edges(("user", "bought", "item"), vec![0, 0, 1], vec![0, 1, 1])
///     .build()?;
/// let near = PinSage::new(&g, &["bought-by", "bought"], 2, 0.5)?.neighbors(&[0], 50, 2, SampleKey::new(7))?;
/// assert_eq!(near.dst, [0, 0]); // both items are near item 0
/// assert_eq!(near.relation(2)?.num_edges(), 2);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct PinSage {
    walk: RandomWalk,
    nodes: usize,
    round: usize,
    traversals: usize,
    stop: f64,
    /// Numbers of walks and neighbours per seed in the batches of a loader.
    asked: Option<(usize, usize)>,
}

/// How often walks from seeds visited other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// Visited nodes; those of one seed are in descending order of counts.
    pub src: Vec<u32>,
    /// The seed of each visited node.
    pub dst: Vec<u32>,
    /// Number of visits.
    pub counts: Vec<u32>,
    /// Position of the seed of each visited node in the list of seeds, ascending. It distinguishes the times of a seed that
    /// is sampled at several times.
    pub seeds: Vec<u32>,
}

impl Visits {
    /// The relation with an edge from each visited node to its seed, among `num_nodes` nodes; `counts` are edge weights.
    ///
    /// A seed that was sampled at several times has the edges of all of them. `Relation::from_coo(num_nodes, num_seeds,
    /// src, seeds)` has one destination per position of [`seeds`](Self::seeds) instead.
    ///
    /// # Errors
    /// A node out of range.
    pub fn relation(&self, num_nodes: usize) -> Result<Relation, GraphError> {
        Relation::from_coo(num_nodes, num_nodes, self.src.clone(), self.dst.clone())
    }
}

impl PinSage {
    /// A sampler with up to `traversals` traversals of `metapath` per walk and stop probability `stop`.
    ///
    /// # Errors
    /// As [`RandomWalk::new`]; [`GraphError::OutOfMemory`]; a metapath that does not end in its start type;
    /// `traversals` is 0; `stop` outside `0.0..=1.0`.
    pub fn new<K: EdgeKey>(
        graph: &Graph,
        metapath: &[K],
        traversals: usize,
        stop: f64,
    ) -> Result<Self, GraphError> {
        let round: Vec<usize> =
            metapath.iter().map(|t| graph.schema().etype(t)).collect::<Result<_, _>>()?;
        if traversals == 0 {
            return Err(setting("traversals", "at least one", "0"));
        }
        if !(0.0..=1.0).contains(&stop) {
            return Err(setting("stop", "a probability in 0.0..=1.0", &stop.to_string()));
        }
        let what = || format!("a metapath of {traversals} traversals");
        let mut metapath = room(
            (round.len() as u128).saturating_mul(traversals as u128),
            what,
            "use fewer traversals",
        )?;
        (0..traversals).for_each(|_| metapath.extend_from_slice(&round));
        let walk = RandomWalk::new(graph, &metapath)?;
        let (first, last) = (
            graph.schema().endpoints(round[0]).0,
            graph.schema().endpoints(round[round.len() - 1]).1,
        );
        if first != last {
            let found = format!(
                "`{}` to `{}`",
                graph.schema().ntypes()[first],
                graph.schema().ntypes()[last]
            );
            return Err(setting("metapath", "a metapath that ends in its start type", &found));
        }
        Ok(Self {
            walk,
            nodes: graph.node_counts()[first],
            round: round.len(),
            traversals,
            stop,
            asked: None,
        })
    }

    /// Number of nodes of the type of seeds.
    pub fn num_nodes(&self) -> usize {
        self.nodes
    }

    /// Sets the number of walks and the largest number of neighbours per seed in the batches of a
    /// [`Loader`](crate::Loader).
    #[must_use]
    pub fn with_neighbors(mut self, num_walks: usize, num_neighbors: usize) -> Self {
        self.asked = Some((num_walks, num_neighbors));
        self
    }

    /// Sets the time of each edge of a type, by edge id, for [`neighbors_before`](Self::neighbors_before). Every seed of a
    /// sampler with times needs a time, in a loader by [`Seeds::nodes_before`](crate::Seeds::nodes_before).
    ///
    /// # Errors
    /// As [`RandomWalk::with_times`].
    pub fn with_times(mut self, etype: impl EdgeKey, times: &[i64]) -> Result<Self, GraphError> {
        self.walk = self.walk.with_times(etype, times)?;
        Ok(self)
    }

    /// Samples the most visited nodes of each seed.
    ///
    /// # Errors
    /// A seed out of range; edges have times, so that seeds need times ([`neighbors_before`](Self::neighbors_before));
    /// [`GraphError::OutOfMemory`].
    pub fn neighbors(
        &self,
        seeds: &[u32],
        num_walks: usize,
        num_neighbors: usize,
        key: SampleKey,
    ) -> Result<Visits, GraphError> {
        self.neighbors_of(seeds, None, (num_walks, num_neighbors), key)
    }

    /// As [`neighbors`](Self::neighbors), but each seed has a time, and its walks take only edges strictly before it.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_sampling::{PinSage, SampleKey};
    /// let g = Graph::homogeneous(3, vec![0, 0], vec![1, 2])?;
    /// let sampler = PinSage::new(&g, &["_E"], 1, 0.0)?.with_times("_E", &[10, 20])?;
    /// let near = sampler.neighbors_before(&[0, 0, 0], &[10, 20, 21], 50, 2, SampleKey::new(7))?;
    /// assert_eq!((near.seeds, near.src[0]), (vec![1, 2, 2], 1)); // nothing before 10, node 1 before 20, both before 21
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// As [`neighbors`](Self::neighbors); a number of times other than that of seeds; no edge has a time
    /// ([`with_times`](Self::with_times)).
    pub fn neighbors_before(
        &self,
        seeds: &[u32],
        times: &[i64],
        num_walks: usize,
        num_neighbors: usize,
        key: SampleKey,
    ) -> Result<Visits, GraphError> {
        self.neighbors_of(seeds, Some(times), (num_walks, num_neighbors), key)
    }

    fn neighbors_of(
        &self,
        seeds: &[u32],
        times: Option<&[i64]>,
        (num_walks, num_neighbors): (usize, usize),
        key: SampleKey,
    ) -> Result<Visits, GraphError> {
        let walks = self.walk.walk_of(seeds, times, num_walks, key)?;
        let stops = key.stream("pinsage");
        let of_seed = |(i, &seed): (usize, &u32)| {
            let mut met = vec![];
            for walk in 0..num_walks {
                let nodes =
                    &walks.nodes[(i * num_walks + walk) * (walks.length + 1)..][..walks.length + 1];
                for round in 1..=self.traversals {
                    let endpoints = round > 1
                        && stops.uniform(u64::from(seed) | (walk as u64) << 32, round as u64)
                            < self.stop;
                    let v = nodes[round * self.round];
                    if endpoints || v == NO_NODE {
                        break;
                    }
                    met.push(v);
                }
            }
            met.sort_unstable();
            let mut counted: Vec<(u32, u32)> =
                met.chunk_by(|a, b| a == b).map(|c| (c[0], c.len() as u32)).collect();
            counted.sort_by_key(|&(v, n)| (std::cmp::Reverse(n), v));
            counted.truncate(num_neighbors);
            counted
        };
        let lists: Vec<Vec<(u32, u32)>> = seeds.par_iter().enumerate().map(of_seed).collect();
        let mut visits = Visits::default();
        for ((position, &seed), list) in (0..).zip(seeds).zip(lists) {
            for (v, n) in list {
                visits.src.push(v);
                visits.dst.push(seed);
                visits.counts.push(n);
                visits.seeds.push(position);
            }
        }
        Ok(visits)
    }
}

/// Batches of neighbours. Seeds are nodes of the start type of the metapath; [`PinSage::with_neighbors`] must be set.
impl Sampler for PinSage {
    type Seed = u32;
    type Batch = Visits;
    type Error = GraphError;

    fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Visits, GraphError> {
        self.check(seeds)?;
        let (num_walks, num_neighbors) = self.asked()?;
        let (nodes, times) = starts_of(seeds, self.walk.first());
        self.neighbors_of(nodes, times, (num_walks, num_neighbors), key)
    }
    fn check(&self, seeds: &Seeds) -> Result<(), GraphError> {
        self.asked()?;
        check_starts(seeds, self.walk.schema().ntypes(), self.walk.first(), self.walk.is_timed())
    }
}

impl PinSage {
    fn asked(&self) -> Result<(usize, usize), GraphError> {
        self.asked.ok_or_else(|| {
            setting(
                "neighbors",
                "numbers of walks and neighbours (`PinSage::with_neighbors`)",
                "none",
            )
        })
    }
}

/// Loaders read no features for these batches, as visited nodes are not a list of distinct nodes.
impl SampledBatch for Visits {
    type Id = u32;

    fn num_edges(&self) -> usize {
        self.src.len()
    }
}
