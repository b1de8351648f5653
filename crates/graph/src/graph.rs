//! Defines `Graph`: relations between typed sets of nodes, with features.

use std::sync::Arc;

use burn::tensor::Device;

use crate::features::frame::Frame;
use burn_gnn_structure::{Bytes, EdgeKey, GraphError, IdMap, NodeKey, Relation, Schema};

/// Node type of a homogeneous graph.
pub(crate) const ONE_NODE_TYPE: &str = "_N";
/// Relation name of a homogeneous graph.
pub(crate) const ONE_RELATION: &str = "_E";

/// A graph with typed nodes and edges: one [`Relation`] per edge type, and one [`Frame`] of features per node type and edge
/// type.
///
/// The book: [getting started](https://github.com/burn-gnn/burn-gnn/blob/main/docs/getting-started.md).
///
/// A homogeneous graph is a graph with the single node type `_N` and the single edge type `_E`. Types are always sorted by
/// name. Isolated nodes, relations without edges and types without nodes are allowed. Clones share the edges and the
/// tensors; inserting a column into a clone does not change the original.
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
    /// Assembles a graph from validated relations in schema order.
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
    /// All relations, in schema order.
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
    /// Reads the edges of all relations that are [stored in files](Relation::from_stored_csc) into memory. Methods that
    /// need edges do this on first use. Call it before methods that cannot return an error, such as
    /// [`stats`](Self::stats).
    ///
    /// # Errors
    /// As [`Relation::read_stored`], with the name of the edge type.
    pub fn read_stored(&self) -> Result<(), GraphError> {
        (0..self.relations.len()).try_for_each(|t| self.in_memory(t).map(|_| ()))
    }
    /// The relation of type `t`, after reading its edges into memory if they are in a file.
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
    /// Mutable features of a node type.
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
    /// Mutable features of an edge type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edges_mut(&mut self, etype: impl EdgeKey) -> Result<&mut Frame, GraphError> {
        let i = self.schema.etype(etype)?;
        Ok(&mut self.edge_frames[i])
    }
    /// Copies all feature columns to another device. Edges stay in memory and are shared with this graph; operators copy
    /// them to the device on first use and keep the copy.
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

    /// Node features, in schema order.
    pub fn node_frames(&self) -> &[Frame] {
        &self.node_frames
    }
    /// Edge features, in schema order.
    pub fn edge_frames(&self) -> &[Frame] {
        &self.edge_frames
    }
    /// Mutable node frames and edge frames, in schema order.
    #[doc(hidden)]
    pub fn frames_mut(&mut self) -> (&mut [Frame], &mut [Frame]) {
        (&mut self.node_frames, &mut self.edge_frames)
    }
    /// Number of nodes of all types.
    pub fn total_nodes(&self) -> usize {
        self.num_nodes.iter().sum()
    }
    /// Number of edges of all types.
    pub fn total_edges(&self) -> usize {
        self.relations.iter().map(Relation::num_edges).sum()
    }
    /// Memory of cached data that was derived from edges: layouts, degree scales, copies on devices. See
    /// [`Relation::derived_bytes`].
    pub fn derived_bytes(&self) -> Bytes {
        self.relations.iter().map(Relation::derived_bytes).sum()
    }
    /// Drops cached data that was derived from edges; it is computed again on next use. The memory is freed once all clones
    /// of the graph that share it, such as those in samplers, are dropped. See [`Relation::clear_derived`].
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
    /// The map between type-wise and global node ids.
    ///
    /// # Errors
    /// More than `u64::MAX` nodes.
    pub fn node_id_map(&self) -> Result<IdMap, GraphError> {
        IdMap::from_counts(self.num_nodes.iter().copied())
    }
    /// The map between type-wise and global edge ids.
    ///
    /// # Errors
    /// More than `u64::MAX` edges.
    pub fn edge_id_map(&self) -> Result<IdMap, GraphError> {
        IdMap::from_counts(self.relations.iter().map(Relation::num_edges))
    }
}
