//! Defines learned embeddings of nodes without features.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{NodeKey, row_index};
use burn_gnn_ops::{GraphView, next_stream};

use crate::error::ModelError;
use crate::params::init;

/// Learned embeddings of the nodes of some node types, the input of models for nodes without features.
///
/// An embedding belongs to the rank that owns the node. The halo exchange sends gradients of halo rows back to the owner
/// rank, so its gradient is complete: the owner updates it, and it is excluded from the all-reduce.
///
/// Initial rows are Glorot over the table of the whole graph and keyed by original ids. In a [`seeded`](crate::seeded)
/// scope, embeddings of partitions therefore start with the same rows as those of the whole graph. A larger
/// initialization lets a model separate its training nodes without their neighbours (observed on AIFB).
#[derive(Module, Debug)]
pub struct NodeEmbedding {
    /// `[num_input, dim]` per node type with embeddings.
    pub weights: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    ntypes: Vec<String>,
}

impl NodeEmbedding {
    /// Initializes embeddings of size `dim` for the input nodes of some node types, each from a separate random stream.
    ///
    /// ```
    /// use burn::tensor::Device;
    /// use burn_gnn_graph::Graph;
    /// use burn_gnn_models::NodeEmbedding;
    /// let g = Graph::builder().nodes("venue", 3).edges(("author", "writes", "paper"), vec![0, 1], vec![0, 0]).build()?;
    /// let embedding = NodeEmbedding::new(&g, ["author", "venue"], 16, &Device::flex())?;
    /// assert_eq!(embedding.rows("author").unwrap().dims(), [2, 16]);
    /// assert!(embedding.rows("paper").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The graph does not have one of the node types.
    pub fn new<G: GraphView + ?Sized>(
        g: &G,
        ntypes: impl IntoIterator<Item = impl NodeKey>,
        dim: usize,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let schema = g.schema();
        let types = ntypes.into_iter().map(|t| schema.ntype(t)).collect::<Result<Vec<_>, _>>()?;
        let rows = |&t: &usize| {
            init::rows(
                next_stream(device),
                g.original_ids(t).as_deref(),
                [g.num_dst(t), dim],
                g.total_nodes(t),
                device,
            )
        };
        let weights = types.iter().map(rows).collect();
        Ok(Self { weights, ntypes: types.iter().map(|&t| schema.ntypes()[t].clone()).collect() })
    }

    /// Names of the node types with embeddings.
    pub fn ntypes(&self) -> &[String] {
        &self.ntypes
    }

    /// Returns the embeddings of a node type, if it has some.
    pub fn rows(&self, ntype: &str) -> Option<Tensor<2>> {
        self.ntypes.iter().position(|name| name == ntype).map(|i| self.weights[i].val())
    }

    /// Returns the embeddings of the nodes `ids` of a node type, if it has some.
    ///
    /// # Panics
    /// An id is out of range.
    #[track_caller]
    pub fn rows_of(&self, ntype: &str, ids: &[u32]) -> Option<Tensor<2>> {
        let rows = self.rows(ntype)?;
        let [n, _] = rows.dims();
        if let Some((i, id)) = ids.iter().enumerate().find(|(_, id)| **id as usize >= n) {
            panic!(
                "node_embedding: `ids[{i}]` must lie in 0..{n} (rows of node type `{ntype}`), got {id}"
            );
        }
        let index = row_index(ids.iter().map(|&v| v as usize), &rows.device().without_autodiff());
        Some(rows.select(0, index))
    }
}
