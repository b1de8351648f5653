//! Defines one part of a partitioned graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::TensorData;
use burn_gnn_graph::{HomoId, NodeKey};

use super::attributes::AttributesByType;
use crate::error::DistError;
use crate::partition_book::{Numbering, PartitionBook, ntype_number};

/// One part of a graph: the nodes that it owns (inner nodes), all their in-edges, and copies of the nodes of other
/// parts at the endpoints of its edges (halo nodes).
///
/// ```text
///       part 0          |          part 1              part 1 with a halo of 0 hops:
///                       |
///   (a) ──────> (b) ────┼──> (c) ──────> (d)             local id   0   1   2
///    ^                  |                 │              node       c   d   b
///    └──────────────────┼─────────────────┘                         inner   halo
///                       |
///                                                        inner edges  b->c  c->d
/// ```
///
/// The in-edge `b -> c` belongs to part 1, because `c` does; so `b` is a halo node there. With a halo of one hop, as in
/// DGL, part 1 also holds the out-edge `d -> a` to the other part, and a copy of `a`. Each further hop adds the
/// in-edges of the sources that the previous hop reached.
///
/// * Local node ids: inner nodes by global id, then halo nodes by owner and global id.
/// * Local edge ids: inner edges (those whose destination is inner) by global id, then all other edges by global id.
/// * Features exist for inner nodes and edges. Lists, texts and ids exist for all local nodes and edges.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    pub(crate) book: Arc<PartitionBook>,
    pub(crate) fingerprint: u64,
    pub(crate) graph_name: String,
    pub(crate) part: usize,
    pub(crate) num_hops: usize,
    pub(crate) num_trainers: usize,
    pub(crate) num_inner_nodes: usize,
    pub(crate) num_inner_edges: usize,
    pub(crate) src: Vec<u32>,
    pub(crate) dst: Vec<u32>,
    /// Global id of each local node and edge.
    pub(crate) nid: Vec<u64>,
    pub(crate) eid: Vec<u64>,
    /// Type-wise id in the input graph of each local node and edge.
    pub(crate) orig_nid: Vec<u64>,
    pub(crate) orig_eid: Vec<u64>,
    /// Trainer of each inner node, if parts have several trainers.
    pub(crate) trainer_id: Option<Vec<u32>>,
    /// Feature rows of inner nodes and edges, by (type, column).
    pub(crate) node_feats: Features,
    pub(crate) edge_feats: Features,
    /// Lists, texts and ids of local nodes and edges.
    pub(crate) attributes: AttributesByType,
}

pub(crate) type Features = BTreeMap<(usize, String), TensorData>;

impl Partition {
    /// The partition book: owners and numberings of the whole graph.
    pub fn book(&self) -> &Arc<PartitionBook> {
        &self.book
    }
    /// Name of the graph.
    pub fn graph_name(&self) -> &str {
        &self.graph_name
    }
    /// Number of this part.
    pub fn part(&self) -> usize {
        self.part
    }
    /// Depth of the halo.
    pub fn num_hops(&self) -> usize {
        self.num_hops
    }
    /// Number of trainers per part.
    pub(crate) fn num_trainers(&self) -> usize {
        self.num_trainers
    }
    /// Number of nodes that this part owns. They are the first local nodes.
    pub fn num_inner_nodes(&self) -> usize {
        self.num_inner_nodes
    }
    /// Number of edges that this part owns. They are the first local edges.
    pub fn num_inner_edges(&self) -> usize {
        self.num_inner_edges
    }
    /// Local source of each edge.
    pub fn src(&self) -> &[u32] {
        &self.src
    }
    /// Local destination of each edge.
    pub fn dst(&self) -> &[u32] {
        &self.dst
    }
    /// Global id of each local node.
    pub fn global_nids(&self) -> &[u64] {
        &self.nid
    }
    /// Global id of each local edge.
    pub fn global_eids(&self) -> &[u64] {
        &self.eid
    }
    /// Type-wise id in the input graph of each local node.
    pub fn original_nids(&self) -> &[u64] {
        &self.orig_nid
    }
    /// Ids in the input graph of the nodes of a type that this part owns.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn inner_nids(&self, ntype: impl NodeKey) -> &[u64] {
        let ty = ntype_number(self.book.schema(), ntype);
        let count = |t: usize| self.book.nodes.inner(self.part, t).map_or(0, |n| n as usize);
        let start = (0..ty).map(count).sum::<usize>();
        &self.orig_nid[start..start + count(ty)]
    }
    /// Type-wise id in the input graph of each local edge.
    pub fn original_eids(&self) -> &[u64] {
        &self.orig_eid
    }
    /// Trainer of each inner node, if the part has several. An edge has the trainer of its destination.
    pub fn trainer_ids(&self) -> Option<&[u32]> {
        self.trainer_id.as_deref()
    }
    /// Names of the feature columns of a node type.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn node_columns(&self, ntype: impl NodeKey) -> impl Iterator<Item = &str> {
        let ty = ntype_number(self.book.schema(), ntype);
        self.node_feats.keys().filter(move |k| k.0 == ty).map(|k| k.1.as_str())
    }
    /// Features of the inner nodes of a type, in id order.
    ///
    /// # Panics
    /// There is no such type.
    #[track_caller]
    pub fn node_feature(&self, ntype: impl NodeKey, column: &str) -> Option<&TensorData> {
        self.node_feats.get(&(ntype_number(self.book.schema(), ntype), column.to_owned()))
    }
    /// Ids in the input graph of local nodes and of local edges, per type in local order.
    pub(crate) fn original_rows(&self) -> Result<[Vec<Vec<u32>>; 2], DistError> {
        let rows = |of: &Numbering, global: &[u64], originals: &[u64]| {
            let mut rows = vec![vec![]; of.num_types()];
            for (&global, &original) in global.iter().zip(originals) {
                rows[of.locate(HomoId(global))?.1.ty].push(original as u32);
            }
            Ok::<_, DistError>(rows)
        };
        Ok([
            rows(&self.book.nodes, &self.nid, &self.orig_nid)?,
            rows(&self.book.edges, &self.eid, &self.orig_eid)?,
        ])
    }
}
