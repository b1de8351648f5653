//! Joint ids of a chunked graph.

use burn_gnn_graph::{EdgeType, GraphError, HomoId, IdMap, TypedId};

/// Joint ids of nodes and edges as the metadata of a chunked graph numbers them: type by type, in the order in which the metadata names the
/// types. That is what pipelines around the format use (DGL's guide: `IDConverter`).
///
/// Type numbers here are places in the metadata, not the sorted ones of a [`Schema`](burn_gnn_graph::Schema) or a
/// [`PartitionBook`](crate::PartitionBook): go from one to the other by name. The type-wise ids of both are the same, those of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdConverter {
    ntypes: Vec<String>,
    etypes: Vec<EdgeType>,
    nodes: IdMap,
    edges: IdMap,
}

impl IdConverter {
    pub(crate) fn new(ntypes: Vec<String>, nodes: Vec<usize>, etypes: Vec<EdgeType>, edges: Vec<usize>) -> Result<Self, GraphError> {
        Ok(Self { ntypes, etypes, nodes: IdMap::from_counts(nodes)?, edges: IdMap::from_counts(edges)? })
    }
    /// Node types, in the order of the metadata.
    pub fn ntypes(&self) -> &[String] {
        &self.ntypes
    }
    /// Edge types, in the order of the metadata.
    pub fn etypes(&self) -> &[EdgeType] {
        &self.etypes
    }
    /// Place of a node type in the metadata.
    ///
    /// # Errors
    /// There is no such type.
    pub fn ntype2id(&self, name: &str) -> Result<usize, GraphError> {
        let unknown = || GraphError::UnknownNodeType { name: name.to_owned(), known: self.ntypes.clone() };
        self.ntypes.iter().position(|n| n == name).ok_or_else(unknown)
    }
    /// Place of an edge type in the metadata.
    ///
    /// # Errors
    /// There is no such type.
    pub fn etype2id(&self, etype: &EdgeType) -> Result<usize, GraphError> {
        let unknown =
            || GraphError::UnknownEdgeType { name: etype.to_string(), known: self.etypes.iter().map(ToString::to_string).collect() };
        self.etypes.iter().position(|t| t == etype).ok_or_else(unknown)
    }
    /// Joint id of a node.
    ///
    /// # Errors
    /// No such type or id.
    pub fn nid_het2hom(&self, id: TypedId) -> Result<HomoId, GraphError> {
        self.nodes.to_homo(id)
    }
    /// Type and type-wise id of a joint node id.
    ///
    /// # Errors
    /// No such id.
    pub fn nid_hom2het(&self, id: HomoId) -> Result<TypedId, GraphError> {
        self.nodes.to_typed(id)
    }
    /// Joint id of an edge.
    ///
    /// # Errors
    /// No such type or id.
    pub fn eid_het2hom(&self, id: TypedId) -> Result<HomoId, GraphError> {
        self.edges.to_homo(id)
    }
    /// Type and type-wise id of a joint edge id.
    ///
    /// # Errors
    /// No such id.
    pub fn eid_hom2het(&self, id: HomoId) -> Result<TypedId, GraphError> {
        self.edges.to_typed(id)
    }
}
