//! Maps nodes and edges to the parts that own them, and ids of one kind to another.

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

/// What one part owns, of all types: an entry of [`PartitionBook::metadata`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartMetadata {
    /// The part; rank `i` takes part `i`.
    pub part: usize,
    /// Nodes it owns.
    pub num_nodes: u64,
    /// Edges it owns.
    pub num_edges: u64,
}

/// Owners and numberings of a partitioned graph; the same on every rank.
///
/// Three ids name a node (edges alike):
/// * its *type-wise* id, `0..num_nodes(type)`: what features and other ranks use;
/// * its *global* id (DGL: homogeneous id), a [`HomoId`]: what files use;
/// * its *local* id inside (part, type), from 0: a row of an owned feature matrix.
///
/// By default ids are reshuffled: type-wise ids run part by part, global ids part by part and inside a part type by
/// type, and the book is a table of ranges. The ids of the input graph are in [`Partition`](crate::Partition) and
/// [`LocalPartition`](crate::LocalPartition). Without reshuffle
/// ([`PartitionConfig::with_reshuffle`](crate::PartitionConfig::with_reshuffle)) type-wise ids are those of the input
/// graph, global ids run type by type, and the book holds the owner of every node and edge (8 bytes each).
///
/// Types are given by name or by number: node types as `"a"` or `0` ([`NodeKey`]), edge types as `"to"`,
/// `("a", "to", "b")` or `0` ([`EdgeKey`]), the only type there is as `..`. Calls take one id or many ([`Lookup`]). Ids
/// outside their numbering are errors. A lookup costs `O(log parts)`, of a global id `O(log (parts · types))`.
///
/// ```
/// use burn_gnn_dist::{PartitionConfig, PartitionMethod, partition_graph};
/// use burn_gnn_graph::{Graph, HomoId, TypedId};
/// let g = Graph::builder().nodes("a", 3).nodes("b", 2).edges(("a", "to", "b"), vec![0, 1, 2], vec![0, 0, 1]).build()?;
/// let owner = PartitionMethod::custom([("a", vec![0, 1, 0]), ("b", vec![1, 0])]);
/// let parts = partition_graph(&g, &PartitionConfig::new("g", 2).with_method(owner))?;
/// let book = parts.book();
/// // Nodes `a` 0 and 2 and node `b` 1 went to part 0: they come first.
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
    /// Node types and edge types; type numbers are theirs.
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
    /// Whether nodes and edges were renumbered part by part; if not, type-wise ids are those of the input graph.
    pub fn is_reshuffled(&self) -> bool {
        !self.nodes.is_kept()
    }
    /// What each part owns.
    pub fn metadata(&self) -> Vec<PartMetadata> {
        let of = |part| PartMetadata {
            part,
            num_nodes: self.nodes.part_total(part),
            num_edges: self.edges.part_total(part),
        };
        (0..self.num_parts).map(of).collect()
    }
    /// Nodes of a type in the whole graph.
    ///
    /// # Errors
    /// No such type.
    pub fn num_nodes(&self, ntype: impl NodeKey) -> Result<u64, DistError> {
        self.nodes.count(self.ntype(ntype)?)
    }
    /// Edges of a type in the whole graph.
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
    /// The parts that own edges, by type-wise id: an edge belongs to the owner of its destination.
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
    /// Type-wise ids of the nodes of a type that a part owns: a range, because ids were reshuffled.
    ///
    /// # Errors
    /// No such part or type; [`DistError::KeptIds`] where ids were kept: there use
    /// [`nids_of_part`](Self::nids_of_part).
    pub fn partid2nids(&self, part: usize, ntype: impl NodeKey) -> Result<Range<u64>, DistError> {
        self.nodes.range(part, self.ntype(ntype)?)
    }
    /// Type-wise ids of the edges of a type that a part owns: a range, because ids were reshuffled.
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
    /// Types and type-wise ids of global node ids.
    ///
    /// # Errors
    /// No such id.
    pub fn map_to_per_ntype<A: Lookup<HomoId>>(
        &self,
        ids: A,
    ) -> Result<A::Answer<TypedId>, DistError> {
        ids.answer(|id| self.nodes.locate(id).map(|l| l.1))
    }
    /// Types and type-wise ids of global edge ids.
    ///
    /// # Errors
    /// No such id.
    pub fn map_to_per_etype<A: Lookup<HomoId>>(
        &self,
        ids: A,
    ) -> Result<A::Answer<TypedId>, DistError> {
        ids.answer(|id| self.edges.locate(id).map(|l| l.1))
    }
    /// Global ids of nodes of a type, by type-wise id.
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
    /// Global ids of edges of a type, by type-wise id.
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
    /// Local ids of nodes in the part that owns them.
    ///
    /// # Errors
    /// No such type, id or part, or another part owns one.
    pub fn nid2localnid<A: Lookup<u64>>(
        &self,
        ntype: impl NodeKey,
        ids: A,
        part: usize,
    ) -> Result<A::Answer<u64>, DistError> {
        let ty = self.ntype(ntype)?;
        ids.answer(|id| self.nodes.to_local(TypedId { ty, id }, part))
    }
    /// Local ids of edges in the part that owns them.
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
    /// Type-wise ids of local node ids.
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
    /// Type-wise ids of local edge ids.
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
