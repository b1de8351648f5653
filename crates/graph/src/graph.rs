//! Defines graphs: relations between typed node sets, with features.

use std::sync::Arc;

use burn::tensor::Device;

use crate::features::frame::Frame;
use burn_gnn_structure::{Bytes, EdgeKey, GraphError, IdMap, NodeKey, Relation, Schema};

/// Node type of a graph that has only one.
pub(crate) const ONE_NODE_TYPE: &str = "_N";
/// Relation of a graph that has only one.
pub(crate) const ONE_RELATION: &str = "_E";

/// Node types, canonical edge types, one [`Relation`] per edge type and a [`Frame`] per type.
///
/// The book: [getting started](https://github.com/burn-gnn/burn-gnn/blob/main/docs/getting-started.md).
///
/// A homogeneous graph is a graph with node type `_N` and edge type `_E`. Types are sorted by name
/// whatever order they were given in; isolated nodes, empty relations and empty types are allowed.
/// Structure is shared between clones, frames belong to each clone (their tensors are shared), so
/// writing features never touches another copy.
///
/// ```
/// use burn_gnn_graph::Graph;
/// let g = Graph::builder()
///     .nodes("author", 3)
///     .nodes("paper", 4)
///     .edges(("author", "writes", "paper"), vec![0, 0, 2], vec![1, 3, 3])
///     .edges(("paper", "cites", "paper"), vec![1], vec![0])
///     .build()?;
/// assert_eq!(g.num_nodes("paper")?, 4);
/// assert_eq!(g.relation("cites")?.num_edges(), 1);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    schema: Arc<Schema>,
    num_nodes: Arc<[usize]>,
    relations: Arc<[Relation]>,
    node_frames: Vec<Frame>,
    edge_frames: Vec<Frame>,
}

impl Graph {
    /// `relations` in schema order, already checked.
    #[doc(hidden)]
    pub fn assemble(schema: Arc<Schema>, num_nodes: Vec<usize>, relations: Vec<Relation>) -> Self {
        let node_frames = schema
            .ntypes()
            .iter()
            .zip(&num_nodes)
            .map(|(t, &n)| Frame::new(format!("nodes of `{t}`"), n))
            .collect();
        let edge_frames = schema
            .etypes()
            .iter()
            .zip(&relations)
            .map(|(t, r)| Frame::new(format!("edges of `{t}`"), r.num_edges()))
            .collect();
        Self {
            schema,
            num_nodes: num_nodes.into(),
            relations: relations.into(),
            node_frames,
            edge_frames,
        }
    }

    /// Node types and edge types.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }
    /// Number of nodes of every type, in schema order.
    pub fn node_counts(&self) -> &[usize] {
        &self.num_nodes
    }
    /// Every relation, in schema order.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }
    /// Number of nodes of a type.
    ///
    /// ```
    /// use burn_gnn_graph::Graph;
    /// let g = Graph::homogeneous(3, vec![0, 1], vec![1, 2])?;
    /// assert_eq!((g.num_nodes(..)?, g.num_edges(..)?), (3, 2)); // as g.num_nodes("_N")?, g.num_edges("_E")?
    /// assert_eq!(g.nodes(..)?.columns().count(), 0);
    /// let two = Graph::builder().nodes("a", 3).nodes("b", 2).build()?;
    /// assert!(two.num_nodes(..).is_err());
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Unknown type.
    pub fn num_nodes(&self, ntype: impl NodeKey) -> Result<usize, GraphError> {
        Ok(self.num_nodes[self.schema.ntype(ntype)?])
    }
    /// Number of edges of a type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn num_edges(&self, etype: impl EdgeKey) -> Result<usize, GraphError> {
        Ok(self.relation(etype)?.num_edges())
    }
    /// The edges of a type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn relation(&self, etype: impl EdgeKey) -> Result<&Relation, GraphError> {
        Ok(&self.relations[self.schema.etype(etype)?])
    }
    /// Reads the edges of all relations that are [stored in files](Relation::from_stored_csc) into memory. Methods
    /// that need edges do so themselves; those that cannot return an error, such as [`stats`](Self::stats), do not fail
    /// after this call.
    ///
    /// # Errors
    /// As [`Relation::read_stored`], with the name of the edge type.
    pub fn read_stored(&self) -> Result<(), GraphError> {
        (0..self.relations.len()).try_for_each(|t| self.in_memory(t).map(|_| ()))
    }
    /// The relation of type `t`; reads its edges into memory first if they are in a file.
    ///
    /// # Errors
    /// As [`read_stored`](Self::read_stored).
    #[doc(hidden)]
    pub fn in_memory(&self, t: usize) -> Result<&Relation, GraphError> {
        let relation = &self.relations[t];
        relation.read_stored().map_err(|e| e.in_relation(&self.schema.etypes()[t].to_string()))?;
        Ok(relation)
    }
    /// Features of a node type.
    ///
    /// # Errors
    /// Unknown type.
    pub fn nodes(&self, ntype: impl NodeKey) -> Result<&Frame, GraphError> {
        Ok(&self.node_frames[self.schema.ntype(ntype)?])
    }
    /// Features of a node type, to write.
    ///
    /// # Errors
    /// Unknown type.
    pub fn nodes_mut(&mut self, ntype: impl NodeKey) -> Result<&mut Frame, GraphError> {
        let i = self.schema.ntype(ntype)?;
        Ok(&mut self.node_frames[i])
    }
    /// Features of an edge type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edges(&self, etype: impl EdgeKey) -> Result<&Frame, GraphError> {
        Ok(&self.edge_frames[self.schema.etype(etype)?])
    }
    /// Features of an edge type, to write.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edges_mut(&mut self, etype: impl EdgeKey) -> Result<&mut Frame, GraphError> {
        let i = self.schema.etype(etype)?;
        Ok(&mut self.edge_frames[i])
    }
    /// The same graph with the columns of all nodes and edges on another device. Structure stays in memory, where it is
    /// shared with this graph; a device keeps what operators on it have needed of the edges.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_graph::Graph;
    /// let mut g = Graph::homogeneous(2, vec![0], vec![1])?;
    /// g.nodes_mut("_N")?.insert("h", Tensor::<2>::ones([2, 8], &Device::flex()))?;
    /// let other = Device::flex(); // or Device::cuda(0)
    /// assert_eq!(g.to_device(&other).nodes("_N")?.get::<2>("h")?.device(), other);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    #[must_use]
    pub fn to_device(&self, device: &Device) -> Self {
        let mut new = self.clone();
        for frame in new.node_frames.iter_mut().chain(&mut new.edge_frames) {
            *frame = frame.to_device(device);
        }
        new
    }

    /// Node frames in schema order.
    pub fn node_frames(&self) -> &[Frame] {
        &self.node_frames
    }
    /// Edge frames in schema order.
    pub fn edge_frames(&self) -> &[Frame] {
        &self.edge_frames
    }
    /// Node frames and edge frames in schema order, to write.
    #[doc(hidden)]
    pub fn frames_mut(&mut self) -> (&mut [Frame], &mut [Frame]) {
        (&mut self.node_frames, &mut self.edge_frames)
    }
    /// Nodes of all types.
    pub fn total_nodes(&self) -> usize {
        self.num_nodes.iter().sum()
    }
    /// Edges of all types.
    pub fn total_edges(&self) -> usize {
        self.relations.iter().map(Relation::num_edges).sum()
    }
    /// Memory of what was derived from the edges of all types and is kept: layouts, degree scales, copies on devices.
    /// See [`Relation::derived_bytes`].
    pub fn derived_bytes(&self) -> Bytes {
        self.relations.iter().map(Relation::derived_bytes).sum()
    }
    /// Frees what was derived from the edges of all types; it is made again, the same, where somebody asks for it.
    /// Layouts go with the last clone of the graph that was made before, samplers' clones included. See
    /// [`Relation::clear_derived`].
    ///
    /// ```
    /// use burn_gnn_graph::{Bytes, Graph};
    /// let mut g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
    /// g.in_degrees("_E", &[1])?;
    /// assert!(g.derived_bytes().host > 0);
    /// g.clear_derived();
    /// assert_eq!(g.derived_bytes(), Bytes::default());
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    pub fn clear_derived(&mut self) {
        let mut relations = self.relations.to_vec();
        relations.iter_mut().for_each(Relation::clear_derived);
        self.relations = relations.into();
    }
    /// Type-wise node ids to global ids.
    ///
    /// # Errors
    /// More than `u64::MAX` nodes.
    pub fn node_id_map(&self) -> Result<IdMap, GraphError> {
        IdMap::from_counts(self.num_nodes.iter().copied())
    }
    /// Type-wise edge ids to global ids.
    ///
    /// # Errors
    /// More than `u64::MAX` edges.
    pub fn edge_id_map(&self) -> Result<IdMap, GraphError> {
        IdMap::from_counts(self.relations.iter().map(Relation::num_edges))
    }
}
