//! Holds the features of a heterogeneous block for message passing.

use std::sync::Arc;

use burn::tensor::Tensor;
use burn_gnn_graph::{EdgeKey, Frame, NodeKey, Relation, Schema};
use burn_gnn_sampling::Block;

use crate::error::OpsError;
use crate::message::data::graph_data::GraphData;
use crate::message::data::relation_data::RelationData;
use crate::split_rows::first_rows;

/// A [`Block`] with features of sources, destinations and edges per type (DGL's `srcdata`, `dstdata` and `edata`).
///
/// It implements [`MessageOps`](crate::MessageOps) and [`GraphMessageOps`](crate::GraphMessageOps) like a graph: fields
/// `u` are read from the sources of a node type, fields `v` from its destinations, and results are written to
/// destinations. A mean divides by the number of sampled messages. Cloning shares tensors.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{NeighborSampler, SampleKey};
/// use burn_gnn_ops::function::{copy_u, mean, sum};
/// use burn_gnn_ops::{BlockData, Cross, GraphMessageOps, on};
/// let g = Graph::builder()
///     .edges(("user", "follows", "user"), vec![0, 2], vec![1, 1])
///     .edges(("game", "played_by", "user"), vec![0, 1], vec![1, 1])
///     .build()?;
/// let batch = NeighborSampler::new(&g, [-1])?.sample([("user", [1])], SampleKey::new(0))?;
/// let mut block = BlockData::new(&batch.blocks[0]);
/// block.insert("user", "h", Tensor::<1>::ones([3], &Device::flex()))?; // user 1, then those it follows
/// block.insert("game", "h", Tensor::<1>::from_data([10.0, 30.0], &Device::flex()))?;
/// let calls = [on("follows", copy_u("h", "m"), sum("m", "y")), on("played_by", copy_u("h", "m"), mean("m", "y"))];
/// let block = block.multi_update_all(calls, Cross::sum())?;
/// assert_eq!(block.dst("user")?.get::<1>("y")?.into_data().try_to_vec::<f32>().unwrap(), [22.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BlockData {
    schema: Arc<Schema>,
    /// Per edge type.
    relations: Arc<[Relation]>,
    /// Per node type.
    src: Vec<Frame>,
    /// Per node type.
    dst: Vec<Frame>,
    /// Per edge type.
    edges: Vec<Frame>,
}

impl BlockData {
    /// Creates empty frames.
    pub fn new(block: &Block) -> Self {
        let schema = block.schema().clone();
        let frames = |side: &str, rows: &dyn Fn(usize) -> usize| {
            let of = |(t, name): (usize, &String)| {
                Frame::new(format!("{side} of node type `{name}`"), rows(t))
            };
            schema.ntypes().iter().enumerate().map(of).collect::<Vec<_>>()
        };
        let (src, dst) = (
            frames("sources", &|t| block.src_nodes(t).len()),
            frames("destinations", &|t| block.dst_nodes(t).len()),
        );
        let edges =
            |(name, r): (_, &Relation)| Frame::new(format!("edge type `{name}`"), r.num_edges());
        let edges = schema.etypes().iter().zip(block.relations()).map(edges).collect();
        Self { relations: block.relations().into(), src, dst, edges, schema }
    }

    /// Node types and edge types.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
    /// The edges of a type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn relation(&self, etype: impl EdgeKey) -> Result<&Relation, OpsError> {
        Ok(&self.relations[self.schema.etype(etype)?])
    }

    /// Inserts a field of the sources of a node type, and its first rows as the field of the destinations, which are the
    /// first sources.
    ///
    /// # Gradients
    /// The gradients of both fields are accumulated in `x`. First order only.
    ///
    /// # Errors
    /// An unknown node type; not one row per source; an invalid name.
    pub fn insert<const D: usize>(
        &mut self,
        ntype: impl NodeKey,
        name: &str,
        x: Tensor<D>,
    ) -> Result<(), OpsError> {
        let t = self.schema.ntype(ntype)?;
        // The frame reports a wrong number of rows.
        let rows = self.dst[t].len().min(x.dims()[0]);
        let (all, first) = first_rows(x, rows);
        self.src[t].insert(name, all)?;
        Ok(self.dst[t].insert(name, first)?)
    }

    /// Features of the sources of a node type.
    ///
    /// # Errors
    /// Unknown type.
    pub fn src(&self, ntype: impl NodeKey) -> Result<&Frame, OpsError> {
        Ok(&self.src[self.schema.ntype(ntype)?])
    }
    /// Features of the sources of a node type, mutable.
    ///
    /// # Errors
    /// Unknown type.
    pub fn src_mut(&mut self, ntype: impl NodeKey) -> Result<&mut Frame, OpsError> {
        let t = self.schema.ntype(ntype)?;
        Ok(&mut self.src[t])
    }
    /// Features of the destinations of a node type.
    ///
    /// # Errors
    /// Unknown type.
    pub fn dst(&self, ntype: impl NodeKey) -> Result<&Frame, OpsError> {
        Ok(&self.dst[self.schema.ntype(ntype)?])
    }
    /// Features of the destinations of a node type, mutable.
    ///
    /// # Errors
    /// Unknown type.
    pub fn dst_mut(&mut self, ntype: impl NodeKey) -> Result<&mut Frame, OpsError> {
        let t = self.schema.ntype(ntype)?;
        Ok(&mut self.dst[t])
    }
    /// Features of the edges of a type.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edges(&self, etype: impl EdgeKey) -> Result<&Frame, OpsError> {
        Ok(&self.edges[self.schema.etype(etype)?])
    }
    /// Features of the edges of a type, mutable.
    ///
    /// # Errors
    /// Unknown or ambiguous type.
    pub fn edges_mut(&mut self, etype: impl EdgeKey) -> Result<&mut Frame, OpsError> {
        let t = self.schema.etype(etype)?;
        Ok(&mut self.edges[t])
    }
}

impl GraphData for BlockData {
    fn message_schema(&self) -> &Arc<Schema> {
        &self.schema
    }
    fn message_data(&self, etype: usize) -> RelationData {
        let (src, dst) = self.schema.endpoints(etype);
        // Even if both are of one node type, sources and destinations of a block are different rows.
        RelationData {
            relation: self.relations[etype].clone(),
            src: self.src[src].clone(),
            dst: self.dst[dst].clone(),
            edges: self.edges[etype].clone(),
            shares_nodes: false,
        }
    }
    fn message_nodes(&mut self, ntype: usize) -> Result<&mut Frame, OpsError> {
        Ok(&mut self.dst[ntype])
    }
    fn message_edges(&mut self, etype: usize) -> Result<&mut Frame, OpsError> {
        Ok(&mut self.edges[etype])
    }
}
