//! The partition book: owners of nodes and edges, and conversions between kinds of ids.

mod lookup;
mod numbering;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_graph::{EdgeKey, EdgeType, HomoId, NodeKey, Schema, TypedId};

use crate::error::DistError;
pub(crate) use burn_gnn_graph::internal::{etype_number, ntype_number};
pub use lookup::Lookup;
pub(crate) use numbering::{ByPart, Numbering};

/// Sizes of one part, summed over types: an entry of [`PartitionBook::metadata`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartMetadata {
    /// Number of the part; rank `i` opens part `i`.
    pub part: usize,
    /// Number of nodes that the part owns.
    pub num_nodes: u64,
    /// Number of edges that the part owns.
    pub num_edges: u64,
}

/// Owners and numberings of a partitioned graph. The book is the same on every rank.
///
/// A node has three ids, and so has an edge:
/// * a *type-wise* id in `0..num_nodes(type)`, which features and other ranks use;
/// * a *global* id (DGL: homogeneous id), a [`HomoId`], which files use;
/// * a *local* id inside (part, type), starting from 0: its row in a matrix of owned features.
///
/// By default ids are reshuffled: type-wise ids are assigned part by part, global ids part by part and, inside a part,
/// type by type. The book is then a table of ranges. [`Partition`](crate::Partition) and
/// [`LocalPartition`](crate::LocalPartition) have the ids of the input graph. Without reshuffling
/// ([`PartitionConfig::with_reshuffle`](crate::PartitionConfig::with_reshuffle)) type-wise ids are those of the input
/// graph, global ids are assigned type by type, and the book has the owner of every node and edge (8 bytes each).
///
/// Types are given by name or by number: node types as `"a"` or `0` ([`NodeKey`]), edge types as `"to"`,
/// `("a", "to", "b")` or `0` ([`EdgeKey`]); `..` is the only type of a graph with one type. Methods take one id or many
/// ([`Lookup`]), and return an error for ids out of range. A lookup costs `O(log parts)`, for a global id
/// `O(log (parts · types))`.
///
/// ```
/// use burn_gnn_dist::{PartitionConfig, PartitionMethod, partition_graph};
/// use burn_gnn_graph::{Graph, HomoId, TypedId};
/// let g = Graph::builder().nodes("a", 3).nodes("b", 2).edges(("a", "to", "b"), vec![0, 1, 2], vec![0, 0, 1]).build()?;
/// let owner = PartitionMethod::custom([("a", vec![0, 1, 0]), ("b", vec![1, 0])]);
/// let parts = partition_graph(&g, &PartitionConfig::new("g", 2).with_method(owner))?;
/// let book = parts.book();
/// // Part 0 owns nodes 0 and 2 of `a` and node 1 of `b`, so they come first.
/// assert_eq!(book.nid2partid("a", &[0, 1, 2])?, [0, 0, 1]);
/// assert_eq!(book.map_to_homo_nid("b", 0)?, HomoId(2));
/// assert_eq!(book.map_to_per_ntype(&[HomoId(2), HomoId(3)])?, [TypedId { ty: 1, id: 0 }, TypedId { ty: 0, id: 2 }]);
/// assert_eq!(book.partid2nids(1, "a")?, 2..3);
/// assert_eq!(book.eid2partid("to", &[0, 1, 2])?, [0, 1, 1]);
/// assert!(book.nid2partid("a", 3).is_err());
/// # Ok::<(), burn_gnn_dist::DistError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionBook {
    schema: Arc<Schema>,
    num_parts: usize,
    pub(crate) nodes: Numbering,
    pub(crate) edges: Numbering,
}

impl PartitionBook {
    pub(crate) fn new(
        schema: Arc<Schema>,
        num_parts: usize,
        nodes: Numbering,
        edges: Numbering,
    ) -> Self {
        Self { schema, num_parts, nodes, edges }
    }
    /// Node types and edge types, whose order defines type numbers.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
    /// Names of the node types, by number.
    pub fn ntypes(&self) -> &[String] {
        self.schema.ntypes()
    }
    /// Canonical edge types, by number.
    pub fn etypes(&self) -> &[EdgeType] {
        self.schema.etypes()
    }
    /// Number of parts.
    pub fn num_parts(&self) -> usize {
        self.num_parts
    }
    /// Whether nodes and edges were renumbered part by part. If not, type-wise ids are those of the input graph.
    pub fn is_reshuffled(&self) -> bool {
        !self.nodes.is_kept()
    }
    /// Sizes of all parts.
    pub fn metadata(&self) -> Vec<PartMetadata> {
        let of = |part| PartMetadata {
            part,
            num_nodes: self.nodes.part_total(part),
            num_edges: self.edges.part_total(part),
        };
        (0..self.num_parts).map(of).collect()
    }
    /// Number of nodes of a type in the whole graph.
    ///
    /// # Errors
    /// No such type.
    pub fn num_nodes(&self, ntype: impl NodeKey) -> Result<u64, DistError> {
        self.nodes.count(self.ntype(ntype)?)
    }
    /// Number of edges of a type in the whole graph.
    ///
    /// # Errors
    /// No such type.
    pub fn num_edges(&self, etype: impl EdgeKey) -> Result<u64, DistError> {
        self.edges.count(self.etype(etype)?)
    }
    /// The parts that own nodes, by type-wise id.
    ///
    /// # Errors
    /// No such type or id.
    pub fn nid2partid<A: Lookup<u64>>(
        &self,
        ntype: impl NodeKey,
        ids: A,
    ) -> Result<A::Answer<usize>, DistError> {
        let ty = self.ntype(ntype)?;
        ids.answer(|id| self.nodes.owner(TypedId { ty, id }))
    }
    /// The parts that own edges, by type-wise id. The owner of an edge is that of its destination.
    ///
    /// # Errors
    /// No such type or id.
    pub fn eid2partid<A: Lookup<u64>>(
        &self,
        etype: impl EdgeKey,
        ids: A,
    ) -> Result<A::Answer<usize>, DistError> {
        let ty = self.etype(etype)?;
        ids.answer(|id| self.edges.owner(TypedId { ty, id }))
    }
    /// Type-wise ids of the nodes of a type that a part owns. They are a range if ids were reshuffled.
    ///
    /// # Errors
    /// No such part or type; [`DistError::KeptIds`] if ids were not reshuffled: use
    /// [`nids_of_part`](Self::nids_of_part) instead.
    pub fn partid2nids(&self, part: usize, ntype: impl NodeKey) -> Result<Range<u64>, DistError> {
        self.nodes.range(part, self.ntype(ntype)?)
    }
    /// Type-wise ids of the edges of a type that a part owns. They are a range if ids were reshuffled.
    ///
    /// # Errors
    /// As [`partid2nids`](Self::partid2nids).
    pub fn partid2eids(&self, part: usize, etype: impl EdgeKey) -> Result<Range<u64>, DistError> {
        self.edges.range(part, self.etype(etype)?)
    }
    /// Type-wise ids of the nodes of a type that a part owns, ascending, reshuffled or not: entry `i` has local id `i`.
    ///
    /// # Errors
    /// No such part or type.
    pub fn nids_of_part(&self, part: usize, ntype: impl NodeKey) -> Result<Vec<u64>, DistError> {
        self.nodes.ids(part, self.ntype(ntype)?)
    }
    /// Type-wise ids of the edges of a type that a part owns, ascending, reshuffled or not: entry `i` has local id `i`.
    ///
    /// # Errors
    /// No such part or type.
    pub fn eids_of_part(&self, part: usize, etype: impl EdgeKey) -> Result<Vec<u64>, DistError> {
        self.edges.ids(part, self.etype(etype)?)
    }
    /// Converts global node ids to types and type-wise ids.
    ///
    /// # Errors
    /// No such id.
    pub fn map_to_per_ntype<A: Lookup<HomoId>>(
        &self,
        ids: A,
    ) -> Result<A::Answer<TypedId>, DistError> {
        ids.answer(|id| self.nodes.locate(id).map(|l| l.1))
    }
    /// Converts global edge ids to types and type-wise ids.
    ///
    /// # Errors
    /// No such id.
    pub fn map_to_per_etype<A: Lookup<HomoId>>(
        &self,
        ids: A,
    ) -> Result<A::Answer<TypedId>, DistError> {
        ids.answer(|id| self.edges.locate(id).map(|l| l.1))
    }
    /// Converts type-wise ids of nodes to global ids.
    ///
    /// # Errors
    /// No such type or id.
    pub fn map_to_homo_nid<A: Lookup<u64>>(
        &self,
        ntype: impl NodeKey,
        ids: A,
    ) -> Result<A::Answer<HomoId>, DistError> {
        let ty = self.ntype(ntype)?;
        ids.answer(|id| self.nodes.to_global(TypedId { ty, id }))
    }
    /// Converts type-wise ids of edges to global ids.
    ///
    /// # Errors
    /// No such type or id.
    pub fn map_to_homo_eid<A: Lookup<u64>>(
        &self,
        etype: impl EdgeKey,
        ids: A,
    ) -> Result<A::Answer<HomoId>, DistError> {
        let ty = self.etype(etype)?;
        ids.answer(|id| self.edges.to_global(TypedId { ty, id }))
    }
    /// Global id of a node.
    ///
    /// # Errors
    /// No such type or id.
    pub fn node_to_global(&self, id: TypedId) -> Result<HomoId, DistError> {
        self.nodes.to_global(id)
    }
    /// Type and type-wise id of a global node id.
    ///
    /// # Errors
    /// No such id.
    pub fn global_to_node(&self, id: HomoId) -> Result<TypedId, DistError> {
        self.map_to_per_ntype(id)
    }
    /// Global id of an edge.
    ///
    /// # Errors
    /// No such type or id.
    pub fn edge_to_global(&self, id: TypedId) -> Result<HomoId, DistError> {
        self.edges.to_global(id)
    }
    /// Type and type-wise id of a global edge id.
    ///
    /// # Errors
    /// No such id.
    pub fn global_to_edge(&self, id: HomoId) -> Result<TypedId, DistError> {
        self.map_to_per_etype(id)
    }
    /// Converts type-wise ids of nodes to local ids in the part that owns them.
    ///
    /// # Errors
    /// No such type, id or part; another part owns a node.
    pub fn nid2localnid<A: Lookup<u64>>(
        &self,
        ntype: impl NodeKey,
        ids: A,
        part: usize,
    ) -> Result<A::Answer<u64>, DistError> {
        let ty = self.ntype(ntype)?;
        ids.answer(|id| self.nodes.to_local(TypedId { ty, id }, part))
    }
    /// Converts type-wise ids of edges to local ids in the part that owns them.
    ///
    /// # Errors
    /// As [`nid2localnid`](Self::nid2localnid).
    pub fn eid2localeid<A: Lookup<u64>>(
        &self,
        etype: impl EdgeKey,
        ids: A,
        part: usize,
    ) -> Result<A::Answer<u64>, DistError> {
        let ty = self.etype(etype)?;
        ids.answer(|id| self.edges.to_local(TypedId { ty, id }, part))
    }
    /// Converts local node ids to type-wise ids.
    ///
    /// # Errors
    /// No such type, part or local id.
    pub fn localnid2nid<A: Lookup<u64>>(
        &self,
        ntype: impl NodeKey,
        local: A,
        part: usize,
    ) -> Result<A::Answer<u64>, DistError> {
        let ty = self.ntype(ntype)?;
        local.answer(|id| self.nodes.local_to_typewise(ty, id, part))
    }
    /// Converts local edge ids to type-wise ids.
    ///
    /// # Errors
    /// No such type, part or local id.
    pub fn localeid2eid<A: Lookup<u64>>(
        &self,
        etype: impl EdgeKey,
        local: A,
        part: usize,
    ) -> Result<A::Answer<u64>, DistError> {
        let ty = self.etype(etype)?;
        local.answer(|id| self.edges.local_to_typewise(ty, id, part))
    }

    fn ntype(&self, key: impl NodeKey) -> Result<usize, DistError> {
        Ok(self.schema.ntype(key)?)
    }
    fn etype(&self, key: impl EdgeKey) -> Result<usize, DistError> {
        Ok(self.schema.etype(key)?)
    }
}
