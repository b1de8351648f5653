//! Learns embeddings for node types without features.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::{NodeKey, row_index};
use burn_gnn_ops::{GraphView, next_stream};

use crate::error::ModelError;
use crate::params::init;

/// One learned embedding per node, for some node types.
///
/// Embeddings belong to the rank that owns the node. Their gradients are complete there, as the exchange sends
/// gradients of halo rows back to the owner rank, so the owner steps them and they are kept out of the all-reduce.
/// Initial rows are keyed by original ids and scaled by the number of nodes of the whole graph: made in a
/// [`seeded`](crate::seeded) scope, the embeddings of partitions start with the rows of the whole graph. They follow
/// Glorot's rule over the whole table, because with large initial rows a model distinguishes its training nodes without
/// their neighbours (seen on AIFB).
#[derive(Module, Debug)]
pub struct NodeEmbedding {
    /// `[num_input, dim]` per embedded type.
    pub weights: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    ntypes: Vec<String>,
}

impl NodeEmbedding {
    /// Embeddings of size `dim` for the input nodes of some types, each type by a separate stream.
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
    /// A type that the graph does not have.
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

    /// Names of the embedded node types.
    pub fn ntypes(&self) -> &[String] {
        &self.ntypes
    }

    /// The embeddings of a node type, if it has some.
    pub fn rows(&self, ntype: &str) -> Option<Tensor<2>> {
        self.ntypes.iter().position(|name| name == ntype).map(|i| self.weights[i].val())
    }

    /// The embeddings of some nodes of `ntype`, in this order, if it has some.
    ///
    /// # Panics
    /// An id that is no row of the type.
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
