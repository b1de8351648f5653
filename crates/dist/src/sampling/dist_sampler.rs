//! Samples neighbours over all parts.

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

/// [`NeighborSampler`] over a partitioned graph: hop after hop the nodes found so far go to their owners, which sample
/// them, because an owner has all in-edges of its nodes, and send back what they found.
///
/// Draws are keyed by original ids, so around the same seeds the batch is, in original ids and in the order of its
/// rows, the batch that a [`NeighborSampler`] makes of the whole graph, for any number of ranks and any placement.
/// Settings mean what they mean there.
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
/// Two exchanges per hop. Per sampled edge 16 bytes travel, per source found 16 and 4 more for each relation that
/// starts in its type, and 4 for each that also ends there. With disjoint trees, 4 more per node asked for, and 8 per
/// tree to each rank; where seeds have times, 8 more per tree, and two exchanges more for degrees before these times. A
/// relation with times keeps 16 bytes for each out-edge of own nodes.
#[derive(Clone, Debug)]
pub struct DistSampler {
    pub(super) graph: DistGraph,
    /// Whether draws follow degrees, which count later edges.
    pub(super) by_degree: bool,
    pub(super) disjoint: bool,
    /// Per edge type with times.
    pub(super) out_edges: Vec<Option<Arc<OutEdges>>>,
    /// All hops, of which the owner's are cut.
    pub(crate) whole: NeighborSampler,
    pub(super) hops: Arc<Vec<NeighborSampler>>,
}

impl DistSampler {
    /// Uniform sampling without replacement. All ranks give the same fan-outs.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`]; original ids beyond `u32`.
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
    /// How edges are chosen. Weights and times that it needs come first.
    ///
    /// # Errors
    /// As [`NeighborSampler::with_strategy`].
    pub fn with_strategy(mut self, strategy: Strategy) -> Result<Self, DistError> {
        self.by_degree = strategy == Strategy::InDegree;
        if !self.by_degree {
            return self.change(|s| s.with_strategy(strategy));
        }
        self.check_degrees()?;
        // A part does not see all edges of the nodes that it borrows; their degrees in the whole graph are known.
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
    /// Weights of the edges of a type, in a float column with one value per edge. Of a tensor that was inserted as a
    /// column ([`DataSpace::insert`](crate::DataSpace::insert)) the sampler keeps the values that it has now, and the
    /// call is collective; so it is with [`with_times`](Self::with_times) and [`with_mask`](Self::with_mask).
    ///
    /// # Errors
    /// Unknown type or column, another shape; as [`NeighborSampler::with_weights`].
    pub fn with_weights(self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let (t, values) = self.values::<f32>(etype, column)?;
        self.change(|s| s.with_weights(t, &values))
    }
    /// Times of the edges of a type, in an integer column with one value per edge, for
    /// [`sample_before`](Self::sample_before) and [`Strategy::Latest`]. Loaders take a sampler with times only together
    /// with a time for every seed. Collective.
    ///
    /// # Errors
    /// Unknown type or column, another shape; as [`NeighborSampler::with_times`]; on all ranks.
    pub fn with_times(self, etype: impl EdgeKey, column: &str) -> Result<Self, DistError> {
        let (t, values) =
            agree(&*self.graph.comm, "times of edges", self.values::<i64>(etype, column))?;
        let mut new = self.change(|s| s.with_times(t, &values))?;
        new.check_degrees()?;
        new.out_edges[t] = Some(Arc::new(OutEdges::new(&new.graph, t, &values)?));
        Ok(new)
    }
    /// Gives every seed a separate tree, whose rows it shares with no other seed. All ranks must call it.
    #[must_use]
    pub fn with_disjoint(mut self) -> Self {
        self.disjoint = true;
        self
    }
    /// Which edges of a type may be drawn, in a column with one value per edge, 0 or false for those that may not.
    ///
    /// # Errors
    /// Unknown type or column, another shape.
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

    /// The graph that is sampled.
    pub fn graph(&self) -> &DistGraph {
        &self.graph
    }
    /// Number of hops, which is that of blocks.
    pub fn hops(&self) -> usize {
        self.hops.len()
    }
    /// The same sampler over another communicator of the same ranks.
    #[must_use]
    pub fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.graph = self.graph.with_communicator(comm);
        self
    }

    /// A batch around seeds, type-wise ids per node type, whoever owns them; seeds given twice share a row. Collective:
    /// a rank without seeds gives none and gets a batch without nodes.
    ///
    /// # Errors
    /// Unknown type or one named twice, a seed out of range; edges have times, so seeds need some
    /// ([`sample_before`](Self::sample_before)); on all ranks.
    pub fn sample<N: NodeKey, I: AsRef<[u64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I)>,
        key: SampleKey,
    ) -> Result<DistBatch, DistError> {
        self.sample_excluding(seeds, &[], key)
    }

    /// As [`sample`](Self::sample), without ever drawing some edges, given by type-wise id per edge type in schema
    /// order (a shorter list names none of the others). An edge is left out for the seeds of all ranks; only its owner
    /// need name it, or, where several trainers share a part, each of them. Collective.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); an edge that this rank does not own; on all ranks.
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

    /// As [`sample`](Self::sample), over edges strictly before the time of the seed, at every hop, each seed in a tree
    /// of its own; see [`NeighborSampler::sample_before`]. Collective.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); not one time per seed; no relation has times; on all ranks.
    pub fn sample_before<N: NodeKey, I: AsRef<[u64]>, T: AsRef<[i64]>>(
        &self,
        seeds: impl IntoIterator<Item = (N, I, T)>,
        key: SampleKey,
    ) -> Result<DistBatch, DistError> {
        let checked = self.check_timed().and_then(|()| self.graph.select_nodes_before(seeds));
        let (seeds, times) = agree(&*self.graph.comm, "seeds", checked)?;
        self.grow(&seeds, times.as_deref(), &vec![vec![]; self.graph.etypes().len()], key)
    }

    /// Refuses times of seeds where edges have none.
    pub(crate) fn check_timed(&self) -> Result<(), DistError> {
        if self.whole.is_timed() {
            return Ok(());
        }
        let expected = "times of at least one relation (`with_times`)".into();
        Err(DistError::Config { arg: "times", expected, found: "none".into() })
    }
    /// Whether it is a clone of `other`, up to communicators and trees.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hops, &other.hops)
    }
    /// Refuses degrees where edges have times.
    fn check_degrees(&self) -> Result<(), DistError> {
        if !(self.by_degree && self.whole.is_timed()) {
            return Ok(());
        }
        let expected =
            "a strategy that does not count edges later than a seed, as edges have times".into();
        Err(DistError::Config { arg: "strategy", expected, found: "InDegree".into() })
    }

    /// Local ids of own edges.
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

    /// Values of a column of edges of this part, one per edge.
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
        // Hops share weights with the whole, which would be copied before a change.
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

/// Batches of nodes, of one type or several ([`DistGraph::node_seeds`], [`DistGraph::split_seeds`]); each with a time
/// where edges of the sampler have times, and only there.
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
