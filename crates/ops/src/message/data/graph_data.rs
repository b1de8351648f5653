//! Defines `GraphData`, through which message passing reads and writes the features of a graph or block.

use std::sync::Arc;

use burn_gnn_graph::{Frame, Graph, Schema};

use crate::error::OpsError;
use crate::message::data::relation_data::RelationData;

/// Features of nodes and edges of several types, as [`GraphMessageOps`](crate::GraphMessageOps) reads and writes them.
pub trait GraphData: Clone {
    /// Node types and edge types.
    fn message_schema(&self) -> &Arc<Schema>;
    /// Relation of an edge type with the features of its endpoints and edges.
    fn message_data(&self, etype: usize) -> RelationData;
    /// Frame to which results for destinations of a node type are written.
    fn message_nodes(&mut self, ntype: usize) -> Result<&mut Frame, OpsError>;
    /// Frame to which results for edges of an edge type are written.
    fn message_edges(&mut self, etype: usize) -> Result<&mut Frame, OpsError>;
}

impl GraphData for Graph {
    fn message_schema(&self) -> &Arc<Schema> {
        self.schema()
    }
    fn message_data(&self, etype: usize) -> RelationData {
        let (src, dst) = self.schema().endpoints(etype);
        RelationData {
            relation: self.relations()[etype].clone(),
            src: self.node_frames()[src].clone(),
            dst: self.node_frames()[dst].clone(),
            edges: self.edge_frames()[etype].clone(),
            shares_nodes: src == dst,
        }
    }
    fn message_nodes(&mut self, ntype: usize) -> Result<&mut Frame, OpsError> {
        let schema = self.schema().clone();
        Ok(self.nodes_mut(&schema.ntypes()[ntype])?)
    }
    fn message_edges(&mut self, etype: usize) -> Result<&mut Frame, OpsError> {
        Ok(self.edges_mut(etype)?)
    }
}
