//! Neighbour sampling over all parts.

use std::sync::Arc;

use burn_gnn_graph::{EdgeKey, GraphError, NodeKey};
use burn_gnn_sampling::{Fanouts, NeighborSampler, SampleKey, Sampler, SeedKind, Seeds, Strategy};

use super::batch::DistBatch;
use super::out_edges::OutEdges;
use crate::comm::Communicator;
use crate::error::DistError;
use crate::exchange::agree;
use crate::graph::DistGraph;
use crate::loading::{ELSEWHERE, RankSampler, in_order};

/// [`NeighborSampler`] over a partitioned graph. In each hop, the nodes of the frontier are sent to their owners, which
/// have all their in-edges, sample them and send the sampled edges back.
///
/// Random numbers are keyed by original ids. So for the same seeds the batch equals, in original ids and in the order
/// of its rows, the batch that a [`NeighborSampler`] samples from the whole graph, for any number of ranks and any
/// partitioning. Settings have the same meaning as there.
///
/// ```
/// use burn_gnn_dist::{DistError, DistGraph, DistSampler, PartitionConfig, partition_graph, run_ranks};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
/// let alone = NeighborSampler::new(&ring, [1, 1])?.sample([("_N", [0])], SampleKey::new(7))?;
/// let parts = partition_graph(&ring, &PartitionConfig::new("ring", 3))?;
/// run_ranks(3, |comm| {
///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
///     let seeds = g.find_nodes("_N", &[0])?;
///     let batch = DistSampler::new(&g, [1, 1])?.sample([("_N", &seeds)], SampleKey::new(7))?;
///     assert_eq!(batch.mini.blocks[0].original_ids(0), alone.blocks[0].original_ids(0));
///     Ok::<_, DistError>(())
/// })?;
/// # Ok::<(), DistError>(())
/// ```
///
/// # Cost
/// Two exchanges per hop. Bytes sent: 16 per sampled edge; 16 per new source, plus 4 for each relation that starts in
/// its type and 4 for each that also ends there. Disjoint trees send 4 more bytes per requested node, and 8 per tree to
/// each rank. If seeds have times, 8 more bytes per tree, and two more exchanges for degrees before these times. A
/// relation with times takes 16 bytes of memory for each out-edge of own nodes.
#[derive(Clone, Debug)]
pub struct DistSampler {
    pub(super) graph: DistGraph,
    /// Whether the strategy uses degrees, which count edges of any time.
    pub(super) by_degree: bool,
    pub(super) disjoint: bool,
    /// Out-edges for each edge type with times.
    pub(super) out_edges: Vec<Option<Arc<OutEdges>>>,
    /// The sampler of all hops, from which the samplers of single hops are derived.
    pub(crate) whole: NeighborSampler,
    pub(super) hops: Arc<Vec<NeighborSampler>>,
}

impl DistSampler {
    /// Uniform sampling without replacement. Fan-outs must be the same on all ranks.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`]; original ids exceed `u32`.
    pub fn new(graph: &DistGraph, fanouts: impl Into<Fanouts>) -> Result<Self, DistError> {
        let sampled = graph.inner.to_sample()?;
        let whole = NeighborSampler::new(&sampled.graph, fanouts)?.with_original_ids(&sampled)?;
        let out_edges = vec![None; graph.etypes().len()];
        Self {
            graph: graph.clone(),
            by_degree: false,
            disjoint: false,
            out_edges,
            whole,
            hops: Arc::default(),
        }
        .cut()
    }

    /// Samples with replacement: an edge may be drawn several times.
    ///
    /// # Errors
    /// As [`NeighborSampler::with_replacement`].
    pub fn with_replacement(self) -> Result<Self, DistError> {
        self.change(NeighborSampler::with_replacement)
    }
    /// Sets the sampling strategy. Set the weights and times that it needs before.
    ///
    /// # Errors
    /// As [`NeighborSampler::with_strategy`].
    pub fn with_strategy(mut self, strategy: Strategy) -> Result<Self, DistError> {
        self.by_degree = strategy == Strategy::InDegree;
        if !self.by_degree {
            return self.change(|s| s.with_strategy(strategy));
        }
        self.check_degrees()?;
        // A part does not have all edges of its halo nodes, but it has their degrees in the whole graph.
        let inner = self.graph.inner.clone();
        self.change(|mut s| {
            for (t, r) in inner.local.relations().iter().enumerate() {
                let weights: Vec<f32> =
                    r.src().iter().map(|&u| inner.out_degrees[t][u as usize] as f32).collect();
                s = s.with_weights(t, &weights)?;
            }
            s.with_strategy(Strategy::Weighted)
        })
    }
    /// Sets the weights of the edges of a type from a float column with one value per edge. For an inserted tensor
    /// ([`DataSpace::insert`](crate::DataSpace::insert)) the sampler copies its current values, and the call is
    /// collective. The same holds for [`with_times`](Self::with_times) and [`with_mask`](Self::with_mask).
    ///
    /// # Errors
    /// Unknown type or column; another shape; as [`NeighborSampler::with_weights`].
    pub fn with_weights(self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let (t, values) = self.values::<f32>(etype, column)?;
        self.change(|s| s.with_weights(t, &values))
    }
    /// Sets the times of the edges of a type from an integer column with one value per edge, for
    /// [`sample_before`](Self::sample_before) and [`Strategy::Latest`]. A loader with such a sampler requires a time
    /// for every seed. Collective.
    ///
    /// # Errors
    /// On all ranks: an unknown type or column; another shape; as [`NeighborSampler::with_times`].
    pub fn with_times(self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let (t, values) =
            agree(&*self.graph.comm, "times of edges", self.values::<i64>(etype, column))?;
        let mut new = self.change(|s| s.with_times(t, &values))?;
        new.check_degrees()?;
        new.out_edges[t] = Some(Arc::new(OutEdges::new(&new.graph, t, &values)?));
        Ok(new)
    }
    /// Makes edges at exactly the time of a seed visible; see [`NeighborSampler::with_edges_at_seed_time`]. All ranks must
    /// call it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_edges_at_seed_time(self) -> Result<Self, DistError> {
        self.change(|s| Ok(s.with_edges_at_seed_time()))
    }
    /// Gives every seed a separate tree, whose rows it shares with no other seed. All ranks must call it.
    #[must_use]
    pub fn with_disjoint(mut self) -> Self {
        self.disjoint = true;
        self
    }
    /// Excludes edges of a type from sampling by a column with one value per edge: 0 or false excludes an edge.
    ///
    /// # Errors
    /// Unknown type or column; another shape.
    pub fn with_mask(self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let (t, values) = self.values::<f32>(etype, column)?;
        let mask: Vec<bool> = values.iter().map(|&v| v != 0.0).collect();
        self.change(|s| s.with_mask(t, &mask))
    }
    /// Samples on the calling thread only, instead of on all threads of the pool: for loaders that prefetch while the
    /// model trains. Samples are the same.
    pub fn with_one_thread(self) -> Result<Self, DistError> {
        self.change(|s| Ok(s.with_one_thread()))
    }

    /// The sampled graph.
    pub fn graph(&self) -> &DistGraph {
        &self.graph
    }
    /// Number of hops, which equals the number of blocks.
    pub fn hops(&self) -> usize {
        self.hops.len()
    }
    /// Replaces the communicator by another one of the same ranks.
    #[must_use]
    pub fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.graph = self.graph.with_communicator(comm);
        self
    }

    /// Samples a batch around seeds of any rank, given by type-wise ids per node type. Repeated seeds share a row.
    /// Collective: a rank without seeds passes no seeds and gets an empty batch.
    ///
    /// # Errors
    /// On all ranks: an unknown type or one that occurs twice; a seed out of range; edges have times, so seeds need
    /// times too ([`sample_before`](Self::sample_before)).
    pub fn sample<N: NodeKey, I: AsRef<[u64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<DistBatch, DistError> {
        self.sample_excluding(seeds, &[], key)
    }

    /// [`sample`](Self::sample) without some edges, given by type-wise ids per edge type in schema order (missing lists
    /// at the end mean no edges). An edge is excluded for the seeds of all ranks. Its owner must list it; if several
    /// trainers share a part, all of them must. Collective.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); an edge that this rank does not own, on all ranks.
    pub fn sample_excluding<N: NodeKey, I: AsRef<[u64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        edges: &[Vec<u64>],
        key: SampleKey,
    ) -> Result<DistBatch, DistError> {
        let untimed = self.whole.check_untimed().map_err(DistError::from);
        let checked = untimed
            .and_then(|()| self.graph.select_nodes(seeds))
            .and_then(|seeds| Ok((seeds, self.own_edges(edges)?)));
        let (seeds, excluded) = agree(&*self.graph.comm, "seeds", checked)?;
        self.grow(&seeds, None, &excluded, key)
    }

    /// [`sample`](Self::sample) over edges strictly before the time of the seed, in every hop, or also at it
    /// ([`with_edges_at_seed_time`](Self::with_edges_at_seed_time)). Each seed has a separate tree; see [`NeighborSampler::sample_before`]. Collective.
    ///
    /// # Errors
    /// As [`sample`](Self::sample). Also on all ranks: the number of times differs from that of seeds; no relation has
    /// times.
    pub fn sample_before<N: NodeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        key: SampleKey,
    ) -> Result<DistBatch, DistError> {
        let checked = self.check_timed().and_then(|()| self.graph.select_nodes_before(seeds));
        let (seeds, times) = agree(&*self.graph.comm, "seeds", checked)?;
        self.grow(&seeds, times.as_deref(), &vec![vec![]; self.graph.etypes().len()], key)
    }

    /// Returns an error for times of seeds if edges have none.
    pub(crate) fn check_timed(&self) -> Result<(), DistError> {
        if self.whole.is_timed() {
            return Ok(());
        }
        let expected = "times of at least one relation (`with_times`)".into();
        Err(DistError::Config { arg: "times", expected, found: "none".into() })
    }
    /// Whether this is a clone of `other`, up to communicators and trees.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hops, &other.hops)
    }
    /// Returns an error for a strategy by degrees if edges have times.
    fn check_degrees(&self) -> Result<(), DistError> {
        if !(self.by_degree && self.whole.is_timed()) {
            return Ok(());
        }
        let expected =
            "a strategy that does not count edges later than a seed, as edges have times".into();
        Err(DistError::Config { arg: "strategy", expected, found: "InDegree".into() })
    }

    /// Converts ids of own edges to local ids.
    fn own_edges(&self, edges: &[Vec<u64>]) -> Result<Vec<Vec<u32>>, DistError> {
        let owners = &self.graph.inner.edges;
        if edges.len() > owners.names().len() {
            let (expected, found) = (
                format!("lists for at most {} edge types", owners.names().len()),
                edges.len().to_string(),
            );
            return Err(DistError::Config { arg: "edges", expected, found });
        }
        let mut out = vec![vec![]; owners.names().len()];
        for (t, ids) in edges.iter().enumerate() {
            owners.check(t, ids)?;
            for &id in ids {
                let (owner, row) = owners.locate(t, id);
                if owner != self.graph.comm.rank() {
                    return Err(self.graph.not_owned(
                        format!("edge of `{}`", owners.names()[t]),
                        id,
                        owner,
                    ));
                }
                out[t].push(row);
            }
        }
        Ok(out)
    }

    /// Reads a column of the edges of this part, with one value per edge.
    fn values<T: burn::tensor::Element>(
        &self,
        etype: impl EdgeKey,
        column: &str,
    ) -> Result<(usize, Vec<T>), DistError> {
        let of = self.graph.edge_policy(etype)?;
        let (t, data) = (of.ty, self.graph.part_values(of, column)?);
        let edges = self.graph.inner.edges.count(t);
        if data.num_elements() != edges {
            let e = GraphError::Length {
                relation: self.graph.etypes()[t].to_string(),
                arg: column.to_owned(),
                why: "one value per edge",
                expected: edges,
                actual: data.num_elements(),
            };
            return Err(e.into());
        }
        Ok((t, data.iter::<T>().collect()))
    }

    fn change(
        mut self,
        f: impl FnOnce(NeighborSampler) -> Result<NeighborSampler, GraphError>,
    ) -> Result<Self, DistError> {
        // Samplers of single hops share the weights with `whole`, so a change would copy them.
        self.hops = Arc::default();
        self.whole = f(self.whole)?;
        self.cut()
    }
    fn cut(mut self) -> Result<Self, DistError> {
        self.hops = Arc::new(
            (0..self.whole.hops()).map(|hop| self.whole.only_hop(hop)).collect::<Result<_, _>>()?,
        );
        Ok(self)
    }
}

/// Samples batches of seed nodes of one or several types ([`DistGraph::node_seeds`], [`DistGraph::split_seeds`]). Seeds
/// must have times if and only if edges of the sampler have times.
impl Sampler for DistSampler {
    type Seed = u64;
    type Batch = DistBatch;
    type Error = DistError;
    in_order!();

    fn sample_batch(&self, seeds: &Seeds<u64>, key: SampleKey) -> Result<DistBatch, DistError> {
        let (own, excluded) =
            (seeds.filter(|id| id != ELSEWHERE), vec![vec![]; self.graph.etypes().len()]);
        self.grow(own.ids(), own.times(), &excluded, key)
    }
    fn check(&self, seeds: &Seeds<u64>) -> Result<(), DistError> {
        let check = || -> Result<(), DistError> {
            seeds.expect(SeedKind::Nodes, self.graph.ntypes().len())?;
            match seeds.times() {
                None => Ok(self.whole.check_untimed()?),
                Some(_) => self.check_timed(),
            }
        };
        agree(&*self.graph.comm, "seeds: times", check())
    }
    fn own_seeds(&self, seeds: Seeds<u64>, _: &DistBatch) -> Seeds<u64> {
        seeds.filter(|id| id != ELSEWHERE)
    }
}

impl RankSampler for DistSampler {
    fn graph(&self) -> &DistGraph {
        &self.graph
    }
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self {
        Self::with_communicator(self, comm)
    }
}
