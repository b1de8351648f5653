//! Learned input rows for node types without features.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::row_index;
use burn_gnn_ops::GraphView;

use crate::{init, next_stream};

/// One learned row per node, for some node types.
///
/// Rows belong to the rank that owns the node: their gradients are complete there (halo gradients come
/// home through the exchange), so they are stepped by their owner and kept out of the all-reduce.
/// Initial rows are keyed by original ids and scaled by the whole graph's count: made in a
/// [`seeded`](crate::seeded) scope, the embeddings of partitions start with the rows of the whole graph. Large initial rows let a model tell its training nodes apart without
/// looking at their neighbours (seen on AIFB), hence Glorot's rule over the whole table.
#[derive(Module, Debug)]
pub struct NodeEmbedding {
    /// `[num_input, dim]` per embedded type.
    pub weights: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    ntypes: Vec<usize>,
}

impl NodeEmbedding {
    /// Rows of `dim` columns for the input rows of `ntypes`, each type by a stream of its own.
    pub fn new<G: GraphView + ?Sized>(g: &G, ntypes: Vec<usize>, dim: usize, device: &Device) -> Self {
        let weights = ntypes
            .iter()
            .map(|&t| init::rows(next_stream(device), g.original_ids(t).as_deref(), [g.num_dst(t), dim], g.total_nodes(t), device))
            .collect();
        Self { weights, ntypes }
    }

    /// Numbers of the embedded node types.
    pub fn ntypes(&self) -> &[usize] {
        &self.ntypes
    }

    /// The rows of node type `ntype`, if it is embedded.
    pub fn rows(&self, ntype: usize) -> Option<Tensor<2>> {
        self.ntypes.iter().position(|&t| t == ntype).map(|i| self.weights[i].val())
    }

    /// The rows of some nodes of `ntype`, in this order, if it is embedded.
    pub fn rows_of(&self, ntype: usize, ids: &[u32]) -> Option<Tensor<2>> {
        let rows = self.rows(ntype)?;
        let index = row_index(ids.iter().map(|&v| v as usize), &rows.device().without_autodiff());
        Some(rows.select(0, index))
    }
}
