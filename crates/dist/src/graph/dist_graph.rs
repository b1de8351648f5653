//! A partitioned graph, of which every rank holds one part.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use burn::tensor::Device;
use burn_gnn_graph::{
    EdgeKey, EdgeType, Graph, GraphError, NodeKey, OriginalIds, Schema, Subgraph,
};

use super::fetch::{Counters, RowCounts};
use super::own_rows::ChangingRows;
use super::owners::Owners;
use super::policy::PartitionPolicy;
use super::registry::Registry;
use crate::comm::Communicator;
use crate::error::DistError;
use crate::partition::Partition;
use crate::partition::part::partition::Features;
use crate::partition_book::PartitionBook;
use crate::trainer_rank::TrainerRank;

/// A partitioned heterogeneous graph, of which every rank holds one part (DGL's `DistGraph`, without servers).
///
/// The book: [distributed training](https://github.com/burn-gnn/burn-gnn/blob/main/docs/distributed.md).
///
/// Types are given by name or by number, or as `..` if there is only one ([`NodeKey`], [`EdgeKey`]). Ids of nodes and
/// edges are *type-wise* ids of the [`PartitionBook`], `0..num_nodes(type)`, for nodes and edges of any rank.
/// [`original_nodes`](Self::original_nodes) and [`find_nodes`](Self::find_nodes) convert to ids of the input graph and
/// back.
///
/// **Collective methods** must be called by all ranks in the same order, with an empty list on a rank without requests.
/// If the arguments of one rank are invalid (an unknown type, an id out of range), all ranks return an error from this
/// call, and the next call works.
///
/// The structure is read-only. Clones share all data; use [`with_communicator`](Self::with_communicator) for a clone on
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
    pub(super) device: Device,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) partition: Arc<Partition>,
    pub(crate) trainer: TrainerRank,
    pub(crate) nodes: Owners,
    pub(crate) edges: Owners,
    /// Holders of mutable rows, of nodes and of edges.
    pub(crate) node_rows: Owners,
    pub(crate) edge_rows: Owners,
    /// Rank that trains on each inner node and inner edge, per type, if several trainers share the part.
    pub(crate) trainers: Option<[Vec<Vec<u32>>; 2]>,
    /// `trainer_id` of nodes and of edges, if parts have several trainers.
    pub(crate) trainer_ids: [Features; 2],
    /// Distributed tensors that were inserted as columns.
    pub(crate) inserted: RwLock<HashMap<(PartitionPolicy, String), Arc<dyn ChangingRows>>>,
    /// Graph of the inner nodes, then halo nodes, per type, and the inner edges. Inner nodes have all their in-edges.
    pub(crate) local: Graph,
    /// Type-wise ids of halo nodes, by position.
    pub(crate) halo: Vec<Vec<u64>>,
    /// Original ids of inner nodes, ascending, then of halo nodes.
    pub(crate) node_ids: Vec<Vec<u64>>,
    /// Original ids of inner edges, ascending.
    pub(crate) edge_ids: Vec<Vec<u64>>,
    /// Out-degree in the whole graph of every local node of the source type, per edge type.
    pub(crate) out_degrees: Vec<Vec<u32>>,
    /// In-degree in the whole graph of every local node, per edge type on one node type; empty for other edge types.
    pub(crate) in_degrees: Vec<Vec<u32>>,
    pub(crate) rows: Counters,
    pub(crate) registry: Registry,
    /// This rank's share of the map from ids of the input graph to type-wise ids, per node type.
    pub(super) directories: Vec<Vec<u64>>,
}

impl DistGraph {
    /// Sets the device of gathered tensors, without its autodiff. The default is the CPU, even if the program was built
    /// with other backends.
    #[must_use]
    pub fn with_device(mut self, device: &Device) -> Self {
        self.device = device.clone().inner();
        self
    }
    /// Replaces the communicator by another one of the same ranks, such as a [duplicate](Communicator::duplicate) for
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
    /// The communicator of the ranks.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.comm
    }
    /// Device of gathered tensors.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// The partition book: owners and numberings.
    pub fn book(&self) -> &Arc<PartitionBook> {
        self.inner.partition.book()
    }
    /// The part of this rank, with its features.
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
    /// Number of nodes of a type in the whole graph.
    ///
    /// # Errors
    /// Unknown type.
    pub fn num_nodes(&self, ntype: impl NodeKey) -> Result<u64, DistError> {
        Ok(self.inner.nodes.total(self.schema().ntype(ntype)?))
    }
    /// Number of edges of a type in the whole graph.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn num_edges(&self, etype: impl EdgeKey) -> Result<u64, DistError> {
        Ok(self.inner.edges.total(self.schema().etype(etype)?))
    }
    /// Type-wise ids of the nodes of a type that this rank owns, ascending. If a part has several trainers, each owns
    /// the nodes that it trains on.
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
    /// Hash that identifies the partitioning, in hexadecimal.
    pub(crate) fn fingerprint(&self) -> String {
        format!("{:016x}", self.inner.partition.fingerprint)
    }
    /// Number of rows read so far through this graph and its clones: local, cached and remote.
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
    /// Local id of an inner or halo node; `None` for all other nodes.
    pub(crate) fn local_node(&self, ntype: usize, id: u64) -> Option<u32> {
        if id >= self.nodes.total(ntype) {
            return None;
        }
        self.nodes.own_row(ntype, id).or_else(|| {
            let position = self.nodes.position(ntype, id);
            let at = self.halo[ntype]
                .binary_search_by_key(&position, |&id| self.nodes.position(ntype, id));
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
    /// Original id of a local node as `u32`; [`to_sample`](Self::to_sample) has checked the range.
    pub(crate) fn narrow_id(&self, ntype: usize, local: u32) -> u32 {
        self.node_ids[ntype][local as usize] as u32
    }
    pub(crate) fn narrow_ids(&self, ntype: usize, local: &[u32]) -> Vec<u32> {
        local.iter().map(|&v| self.narrow_id(ntype, v)).collect()
    }
    /// The local graph for samplers, with the original ids that key their random numbers.
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
        // Edges are in original order, and no random number is keyed by their ids.
        let edge_ids = self
            .local
            .relations()
            .iter()
            .map(|r| OriginalIds::from_vec((0..r.num_edges() as u32).collect()))
            .collect();
        Ok(Subgraph { graph: self.local.clone(), node_ids, edge_ids })
    }
}
