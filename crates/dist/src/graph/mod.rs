//! Presents a partitioned graph as one graph, with features and structure from any rank.

mod cache;
mod data;
mod fetch;
mod original_ids;
mod owners;
mod policy;
mod query;
mod registry;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, RwLock};

use burn::tensor::{Device, TensorData};
use burn_gnn_graph::{
    EdgeKey, EdgeType, Graph, GraphError, NodeKey, OriginalIds, Relation, Schema, Subgraph,
};

use crate::exchange::agree;
use crate::local_partition::{
    Pieces, cut, global_in_degrees, global_out_degrees, requests, same_partitioning,
};
use crate::partition::{Features, Opened};
use crate::trainer_rank::{TrainerRank, wrong_rank};
use crate::{Communicator, DistError, HaloPlan, Partition, PartitionBook};
pub use cache::{FeatureCache, FeatureCacheStats};
pub(crate) use data::{ChangingRows, WantedRows};
pub use data::{DataSpace, FeatureData};
pub use fetch::RowCounts;
pub(crate) use fetch::{Counters, OwnRows, Wanted, fetch_one};
pub(crate) use owners::Owners;
pub use policy::PartitionPolicy;
pub use query::InEdges;
pub(crate) use registry::Registry;

/// A partitioned heterogeneous graph, of which every rank holds one part (DGL's `DistGraph`, without servers).
///
/// The book: [distributed training](https://github.com/burn-gnn/burn-gnn/blob/main/docs/distributed.md).
///
/// Types are given by name or by number, the only one there is as `..` ([`NodeKey`], [`EdgeKey`]). Nodes and edges are
/// named by *type-wise* ids of the [`PartitionBook`], `0..num_nodes(type)`, whichever rank owns them.
/// [`original_nodes`](Self::original_nodes) and [`find_nodes`](Self::find_nodes) lead to the ids of the input graph and
/// back.
///
/// **Methods marked collective** are called by all ranks in the same order, also by one that has nothing to ask (an
/// empty list). What is wrong with the arguments of one rank, an unknown type or an id out of range, is an error on all
/// of them in the same call; the next call works.
///
/// The structure is read-only. Clones share everything; [`with_communicator`](Self::with_communicator) makes one for
/// another thread.
///
/// ```
/// use burn_gnn_dist::{DistError, DistGraph, PartitionConfig, partition_graph, run_ranks};
/// use burn_gnn_graph::Graph;
/// # use burn::tensor::{Device, Tensor};
/// let mut ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
/// ring.nodes_mut("_N")?.insert("feat", Tensor::<2>::from_data([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], &Device::flex()))?;
/// let parts = partition_graph(&ring, &PartitionConfig::new("ring", 2))?;
/// let sums = run_ranks(2, |comm| {
///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
///     let all: Vec<u64> = (0..g.num_nodes("_N")?).collect();
///     let x = g.nodes("_N").data("feat").gather::<2>(&all)?; // three rows are here, three come from the other rank
///     Ok::<_, DistError>(x.sum().into_scalar::<f32>())
/// })?;
/// assert_eq!(sums, [15.0; 2]);
/// # Ok::<(), DistError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DistGraph {
    pub(crate) inner: Arc<Inner>,
    pub(crate) comm: Arc<dyn Communicator>,
    device: Device,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) partition: Arc<Partition>,
    pub(crate) trainer: TrainerRank,
    pub(crate) nodes: Owners,
    pub(crate) edges: Owners,
    /// Holders of rows that change, of nodes and of edges.
    pub(crate) node_rows: Owners,
    pub(crate) edge_rows: Owners,
    /// Rank that trains on each inner node and inner edge, per type, where the trainers of a part share it.
    pub(crate) trainers: Option<[Vec<Vec<u32>>; 2]>,
    /// `trainer_id` of nodes and of edges, where the graph was cut for several trainers.
    pub(crate) trainer_ids: [Features; 2],
    /// Tensors that were inserted as columns.
    pub(crate) inserted: RwLock<HashMap<(PartitionPolicy, String), Arc<dyn ChangingRows>>>,
    /// Inner nodes, then halo nodes, per type; inner edges by local id. Inner nodes have all their in-edges.
    pub(crate) local: Graph,
    /// Type-wise ids of halo nodes, by place.
    pub(crate) halo: Vec<Vec<u64>>,
    /// Original ids of inner nodes, ascending, then of halo nodes.
    pub(crate) node_ids: Vec<Vec<u64>>,
    /// Original ids of inner edges, ascending.
    pub(crate) edge_ids: Vec<Vec<u64>>,
    /// Out-degree in the whole graph of every local node of the source type, per edge type.
    pub(crate) out_degrees: Vec<Vec<u32>>,
    /// In-degree in the whole graph of every local node, per edge type on one node type; none for other edge types.
    pub(crate) in_degrees: Vec<Vec<u32>>,
    pub(crate) rows: Counters,
    pub(crate) registry: Registry,
    /// This rank's share of the way back from ids of the input graph, per node type.
    directories: Vec<Vec<u64>>,
}

impl DistGraph {
    /// Reads this rank's part of the partitioned graph `name` from the folder of its metadata file `part_config`.
    /// Collective.
    ///
    /// There are as many ranks as parts, or, where the graph was cut for several trainers per part
    /// ([`num_trainers_per_machine`](crate::PartitionConfig::num_trainers_per_machine)), as many as trainers of all
    /// parts: rank `r` of `parts · trainers` is a trainer of part `r / trainers`, and [owns](Self::own_nodes) the nodes
    /// whose `trainer_id` is `r`.
    ///
    /// # Errors
    /// A file that cannot be read or is damaged, another graph than `name`, another number of ranks than parts or
    /// trainers, parts of different partitionings.
    pub fn open(
        name: &str,
        part_config: impl AsRef<Path>,
        comm: Arc<dyn Communicator>,
    ) -> Result<Self, DistError> {
        let path = part_config.as_ref();
        let read = || {
            let opened = Opened::new(path)?;
            let (num_parts, trainers) =
                (opened.book.num_parts(), opened.meta.num_trainers_per_machine);
            let wrong = || wrong_rank(&*comm, comm.rank(), num_parts, trainers);
            let part = opened.part(
                TrainerRank::of(comm.rank(), comm.size(), num_parts, trainers)
                    .ok_or_else(wrong)?
                    .part,
            )?;
            if part.graph_name() == name {
                return Ok(part);
            }
            let (expected, found) = (
                format!("the name of the graph in {}, `{}`", path.display(), part.graph_name()),
                format!("`{name}`"),
            );
            Err(DistError::Config { arg: "name", expected, found })
        };
        Self::from_partition(agree(&*comm, "open graph", read())?, comm)
    }

    /// [`open`](Self::open) of a part in memory; trainers that are threads of one process can share it as an `Arc`.
    /// Collective.
    ///
    /// # Errors
    /// The part is not this rank's, ranks hold parts of different partitionings, original ids beyond `u32`.
    ///
    /// # Cost
    /// `O(V + E)` of the part, which is held twice: as it is stored, and as a graph to sample from.
    pub fn from_partition(
        partition: impl Into<Arc<Partition>>,
        comm: Arc<dyn Communicator>,
    ) -> Result<Self, DistError> {
        let partition = partition.into();
        let (book, part, trainers) =
            (partition.book().clone(), partition.part(), partition.num_trainers());
        let trainer = TrainerRank::of(comm.rank(), comm.size(), book.num_parts(), trainers)
            .filter(|s| s.part == part);
        let checked = trainer.ok_or_else(|| wrong_rank(&*comm, part, book.num_parts(), trainers));
        let trainer = agree(&*comm, "open graph: part of this rank", checked)?;
        same_partitioning(&partition, &*comm)?;
        let Pieces { relations, halo, orig_nodes, orig_halo, orig_edges } =
            agree(&*comm, "open graph: part", cut(&partition))?;
        let plan = HaloPlan::new(comm.clone(), requests(&book, trainer, &halo, &*comm)?)?;
        let out_degrees = global_out_degrees(&book, &relations, &plan)?;
        let in_degrees = global_in_degrees(&book, &relations, &plan)?;
        let node_ids: Vec<Vec<u64>> = orig_nodes
            .into_iter()
            .zip(orig_halo)
            .map(|(inner, halo)| [inner, halo].concat())
            .collect();
        let local = agree(
            &*comm,
            "open graph: structure",
            local_graph(book.schema(), &node_ids, &relations),
        )?;
        let [nodes, edges] = [true, false].map(|is_node| Owners::of_parts(&book, is_node, trainer));
        let trainers = trainers_of(&partition, &nodes, &relations);
        let ids = |of: &[Vec<u32>]| {
            of.iter()
                .enumerate()
                .map(|(t, ids)| ((t, TRAINER_ID.to_owned()), numbers(ids)))
                .collect()
        };
        let inner = Inner {
            directories: original_ids::directories(&*comm, &nodes, &node_ids)?,
            trainer,
            node_rows: Owners::of_ranks(&nodes),
            edge_rows: Owners::of_ranks(&edges),
            nodes,
            edges,
            trainer_ids: trainers
                .as_ref()
                .map_or_else(Default::default, |[nodes, edges]| [ids(nodes), ids(edges)]),
            trainers: trainers.filter(|_| trainer.trainers > 1),
            inserted: RwLock::default(),
            registry: Registry::default(),
            rows: Counters::default(),
            edge_ids: orig_edges,
            partition,
            local,
            halo,
            node_ids,
            out_degrees,
            in_degrees,
        };
        Ok(Self { inner: Arc::new(inner), comm, device: cpu() })
    }

    /// The same graph with tensors on `device`, without its autodiff. Until then they come on the CPU, whatever other
    /// backends the program was built with.
    #[must_use]
    pub fn with_device(mut self, device: &Device) -> Self {
        self.device = device.clone().inner();
        self
    }
    /// The same graph over another communicator of the same ranks, such as a [duplicate](Communicator::duplicate) for
    /// another thread.
    #[must_use]
    pub fn with_communicator(mut self, comm: Arc<dyn Communicator>) -> Self {
        self.comm = comm;
        self
    }

    /// Name of the graph.
    pub fn name(&self) -> &str {
        self.inner.partition.graph_name()
    }
    /// This rank and the others.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.comm
    }
    /// Where tensors come.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Owners and numberings.
    pub fn book(&self) -> &Arc<PartitionBook> {
        self.inner.partition.book()
    }
    /// This rank's part, with its features.
    pub fn local_partition(&self) -> &Partition {
        &self.inner.partition
    }
    /// Node types and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        self.inner.local.schema()
    }
    /// Node types, sorted.
    pub fn ntypes(&self) -> &[String] {
        self.schema().ntypes()
    }
    /// Canonical edge types, sorted.
    pub fn etypes(&self) -> &[EdgeType] {
        self.schema().etypes()
    }
    /// Nodes of a type in the whole graph.
    ///
    /// # Errors
    /// Unknown type.
    pub fn num_nodes(&self, ntype: impl NodeKey) -> Result<u64, DistError> {
        Ok(self.inner.nodes.total(self.schema().ntype(ntype)?))
    }
    /// Edges of a type in the whole graph.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn num_edges(&self, etype: impl EdgeKey) -> Result<u64, DistError> {
        Ok(self.inner.edges.total(self.schema().etype(etype)?))
    }
    /// Type-wise ids of the nodes of a type that this rank owns, ascending. Of the nodes of a part with several
    /// trainers each owns those that it trains on.
    ///
    /// # Errors
    /// Unknown type.
    pub fn own_nodes(&self, ntype: impl NodeKey) -> Result<Vec<u64>, DistError> {
        Ok(self.own_ids(self.node_policy(ntype)?))
    }
    /// Type-wise ids of the edges of a type that this rank owns, ascending, as [`own_nodes`](Self::own_nodes).
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn own_edges(&self, etype: impl EdgeKey) -> Result<Vec<u64>, DistError> {
        Ok(self.own_ids(self.edge_policy(etype)?))
    }
    pub(crate) fn own_ids(&self, of: PartitionPolicy) -> Vec<u64> {
        let ids = self.owners(of).own(of.ty).zip(0..);
        ids.filter(|&(_, row)| self.inner.is_own(of, row)).map(|(id, _)| id).collect()
    }
    /// Identifies a partitioning, in hexadecimal.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", self.inner.partition.fingerprint)
    }
    /// Rows read so far through this graph and its clones, by where they were.
    pub fn row_counts(&self) -> RowCounts {
        self.inner.rows.read()
    }
}

impl Inner {
    /// Type-wise id of a local node.
    #[inline]
    pub(crate) fn typewise(&self, ntype: usize, local: u32) -> u64 {
        let count = self.nodes.count(ntype);
        if (local as usize) < count {
            self.nodes.id(ntype, u64::from(local))
        } else {
            self.halo[ntype][local as usize - count]
        }
    }
    /// Local number of a node that this part owns or borrows.
    pub(crate) fn local_node(&self, ntype: usize, id: u64) -> Option<u32> {
        if id >= self.nodes.total(ntype) {
            return None;
        }
        self.nodes.own_row(ntype, id).or_else(|| {
            let place = self.nodes.place(ntype, id);
            let at =
                self.halo[ntype].binary_search_by_key(&place, |&id| self.nodes.place(ntype, id));
            at.ok().map(|at| (self.nodes.count(ntype) + at) as u32)
        })
    }
    /// Whether this rank trains on an inner node or inner edge of its part.
    #[inline]
    pub(crate) fn is_own(&self, of: PartitionPolicy, row: u32) -> bool {
        let rank = self.trainer.rank_of(self.trainer.part) as u32;
        let trainers = self.trainers.as_ref().map(|all| &all[usize::from(!of.is_node)][of.ty]);
        trainers.is_none_or(|ranks| ranks[row as usize] == rank)
    }
    /// Original ids of the nodes that this part owns, ascending.
    pub(crate) fn own_originals(&self, ntype: usize) -> &[u64] {
        &self.node_ids[ntype][..self.nodes.count(ntype)]
    }
    /// Original id of a local node, which fits: [`to_sample`](Self::to_sample) has checked it.
    pub(crate) fn narrow_id(&self, ntype: usize, local: u32) -> u32 {
        self.node_ids[ntype][local as usize] as u32
    }
    pub(crate) fn narrow_ids(&self, ntype: usize, local: &[u32]) -> Vec<u32> {
        local.iter().map(|&v| self.narrow_id(ntype, v)).collect()
    }
    /// The graph to sample from with the ids that key its draws.
    pub(crate) fn to_sample(&self) -> Result<Subgraph, DistError> {
        let narrow = |(t, ids): (usize, &Vec<u64>)| match ids
            .iter()
            .find(|&&id| id >= u64::from(u32::MAX))
        {
            None => Ok(OriginalIds::from_vec(ids.iter().map(|&id| id as u32).collect())),
            Some(&count) => {
                let relation = self.nodes.names()[t].clone();
                Err(GraphError::TooLarge {
                    relation,
                    what: "ids",
                    count,
                    limit: u64::from(u32::MAX) - 1,
                })
            }
        };
        let node_ids = self.node_ids.iter().enumerate().map(narrow).collect::<Result<_, _>>()?;
        // Edges stand in original order already, and nothing is keyed by their ids.
        let edge_ids = self
            .local
            .relations()
            .iter()
            .map(|r| OriginalIds::from_vec((0..r.num_edges() as u32).collect()))
            .collect();
        Ok(Subgraph { graph: self.local.clone(), node_ids, edge_ids })
    }
}

/// Name of the column with the rank that trains on a node or edge.
const TRAINER_ID: &str = "trainer_id";

/// Trainer of each inner node and inner edge, per type, if the graph was cut for several: an edge has that of its
/// destination.
fn trainers_of(
    partition: &Partition,
    nodes: &Owners,
    relations: &[Relation],
) -> Option<[Vec<Vec<u32>>; 2]> {
    // Inner nodes stand type by type.
    let mut rest = partition.trainer_ids()?;
    let own = (0..nodes.names().len()).map(|t| {
        let (own, tail) = rest.split_at(nodes.count(t));
        rest = tail;
        own.to_vec()
    });
    let own: Vec<Vec<u32>> = own.collect();
    let schema = partition.book().schema();
    let of = |(t, r): (usize, &Relation)| {
        r.dst().iter().map(|&v| own[schema.endpoints(t).1][v as usize]).collect()
    };
    let edges = relations.iter().enumerate().map(of).collect();
    Some([own, edges])
}

/// A column of integers.
fn numbers(values: &[u32]) -> TensorData {
    TensorData::new(values.iter().map(|&v| i64::from(v)).collect::<Vec<_>>(), [values.len()])
}

/// Relations between all local nodes, where those of a part end in inner nodes only.
fn local_graph(
    schema: &Arc<Schema>,
    node_ids: &[Vec<u64>],
    relations: &[Relation],
) -> Result<Graph, DistError> {
    let mut builder = Graph::builder();
    for (name, ids) in schema.ntypes().iter().zip(node_ids) {
        builder = builder.nodes(name, ids.len());
    }
    for (t, r) in relations.iter().enumerate() {
        let (s, d) = schema.endpoints(t);
        let whole = Relation::from_coo(
            node_ids[s].len(),
            node_ids[d].len(),
            r.src().to_vec(),
            r.dst().to_vec(),
        )?;
        builder = builder.relation(schema.etypes()[t].clone(), whole);
    }
    Ok(builder.build()?)
}

/// The CPU: a GPU is chosen explicitly, never selected because some package of the build enables its backend.
fn cpu() -> Device {
    #[cfg(feature = "flex")]
    return Device::flex();
    #[cfg(all(feature = "ndarray", not(feature = "flex")))]
    #[allow(deprecated)]
    return Device::ndarray();
    #[cfg(not(any(feature = "flex", feature = "ndarray")))]
    return Device::default();
}
