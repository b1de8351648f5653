//! Implements the relational graph convolution on one-hot features.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::row_index;
use burn_gnn_ops::{EdgeTypes, RelationalWeight, relational_aggregate};

use crate::layers::dense::mlp::add_bias;
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, LayerTypes};
use crate::layers::heterogeneous::stacked_relations::{
    IncomingRelations, StackedRelations, cat_rows,
};
use crate::layers::type_map::NodeTensors;
use crate::params::init::{Init, zeros};

/// First layer of an R-GCN on nodes without features: the input of every node is its one-hot vector.
///
/// `y[v] = Σ_r 1/|N_r(v)| Σ_(u in N_r(v)) Σ_b a[r, b] V_b[u] + V_0[v] + c`
///
/// This equals [`RelGraphConv`](crate::RelGraphConv) with bases on one-hot vectors, where `W_r = Σ_b a[r, b] V_b` has one
/// row per node, but the one-hot vectors are never built. The rows `V` are not parameters of this layer but of a
/// [`NodeEmbedding`](crate::NodeEmbedding), because a row belongs to the rank that owns the node. Without self loops
/// there is no `V_0`.
///
/// # Shapes
/// The row of a node has `hidden · bases` columns, ordered by hidden feature and then by basis, and `hidden` more columns
/// for `V_0`. The result has `hidden` columns.
///
/// [`RgcnConfig`](crate::RgcnConfig) creates it as the first layer of an [`Rgcn`](crate::Rgcn):
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{NodeTensors, RelWeights, RgcnConfig, TypeMap};
/// let device = Device::flex();
/// let g = Graph::builder().edges(("a", "to", "b"), vec![0, 1], vec![0, 0]).build()?;
/// let config = RgcnConfig::new(3).with_weights(RelWeights::Basis(2)).with_one_hot(true);
/// let model = config.init(&g, TypeMap::default(), &device);
/// assert!(model.net.one_hot.is_some());
/// assert_eq!(model.forward(&g, NodeTensors::default())["b"].dims(), [1, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
/// `2 · hidden · bases` operations per edge; one halo exchange of rows.
///
/// # Paper
/// Schlichtkrull et al., ESWC 2018, section 4.1: the input of the first layer is a one-hot vector per node.
#[derive(Module, Debug)]
pub struct OneHotConv {
    /// `[R, B]`.
    pub coeff: Param<Tensor<2>>,
    /// `[hidden]`.
    pub bias: Param<Tensor<1>>,
    #[module(skip)]
    self_loop: bool,
    #[module(skip)]
    relations: StackedRelations,
}

impl OneHotConv {
    /// Initializes coefficients by Glorot, the bias with 0.
    pub(crate) fn new(
        relations: usize,
        bases: usize,
        hidden: usize,
        self_loop: bool,
        device: &Device,
    ) -> Self {
        let coeff = Init::glorot(device).matrix([relations, bases]);
        let relations = StackedRelations::default();
        Self { coeff, bias: zeros(hidden, device), self_loop, relations }
    }

    /// Number of learned numbers per node, the size of its row in the embedding.
    pub fn row_columns(&self) -> usize {
        let ([_, bases], [hidden]) = (self.coeff.val().dims(), self.bias.val().dims());
        hidden * bases + if self.self_loop { hidden } else { 0 }
    }
}

impl HeteroLayer for OneHotConv {
    /// Computes features of every node type from the embedding rows of all nodes.
    ///
    /// # Panics
    /// Shapes or numbers of types differ from those of the graph, or edges have weights or features.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        let edges = edges.into();
        edges.expect_bare("one_hot_conv");
        let g = edges.view();
        let ([relations, bases], [hidden]) = (self.coeff.val().dims(), self.bias.val().dims());
        let types = LayerTypes {
            layer: "one_hot_conv",
            ntypes: &[],
            etypes: &[],
            num_ntypes: None,
            num_etypes: Some(("relations", relations)),
        };
        let rows = types.inputs(g, x.into(), |_| self.row_columns());
        let neighbor_columns = hidden * bases;
        let src = g.src_rows(
            types.layer,
            rows.iter().map(|x| x.clone().slice([0..x.dims()[0], 0..neighbor_columns])).collect(),
        );
        let stacked = self.relations.of(&g);
        let weights = |etypes: &[usize]| {
            let (coeff, n) = (self.coeff.val(), etypes.len());
            let ids = row_index(etypes.iter().copied(), &coeff.device());
            let coeff = coeff.select(0, ids).reshape([n, 1, bases, 1]);
            RelationalWeight::BlockDiagonal(coeff.expand([n, hidden, bases, 1]))
        };
        let sum = |IncomingRelations { etypes, tables, index }: &IncomingRelations| {
            relational_aggregate(
                &index.mean(),
                cat_rows(tables.iter().map(|&t| src[t].clone())),
                weights(etypes),
                None,
            )
        };
        let finish = |(t, (incoming, x)): (usize, (&Option<IncomingRelations>, Tensor<2>))| {
            let (device, dtype) = (x.device(), x.dtype());
            let self_term = self.self_loop.then(|| {
                let n = x.dims()[0];
                g.dst_rows(t, x.slice([0..n, neighbor_columns..neighbor_columns + hidden]))
            });
            let y = match (incoming.as_ref().map(sum), self_term) {
                (Some(sum), Some(self_term)) => sum + self_term,
                (Some(y), None) | (None, Some(y)) => y,
                (None, None) => Tensor::zeros([g.num_dst(t), hidden], (&device, dtype)),
            };
            add_bias(y, Some(self.bias.val()))
        };
        NodeTensors::from_list(
            g.schema(),
            stacked.iter().zip(rows).enumerate().map(finish).map(Some),
        )
    }
}
