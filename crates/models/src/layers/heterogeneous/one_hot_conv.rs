//! Implements the relational graph convolution of one-hot input.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::row_index;
use burn_gnn_ops::{EdgeTypes, RelationalWeight, relational_aggregate};

use crate::layers::dense::mlp::add_bias;
use crate::layers::heterogeneous::hetero_layer::{HeteroLayer, check_num_etypes};
use crate::layers::heterogeneous::stacked_relations::{Incoming, Sorted, cat_rows};
use crate::layers::type_map::{NodeTensors, of_all_types};
use crate::params::init::{Init, zeros};

/// First layer of an R-GCN whose nodes have no features,
/// `y[v] = Σ_r 1/|N_r(v)| Σ_(u in N_r(v)) Σ_b a[r, b] V_b[u] + V_0[v] + c`.
///
/// This is [`RelGraphConv`](crate::RelGraphConv) with bases on the one-hot vectors of nodes, `W_r = Σ_b a[r, b] V_b`
/// with a row per node, without the one-hot vectors. The rows `V` are not part of the layer, as they belong to the rank
/// that owns the node; `V_0` is left out without own terms.
///
/// # Shapes
/// Rows of a node: `hidden · bases` columns (all bases of a column side by side) and, with own terms, `hidden` more.
/// The result has `hidden` columns.
///
/// It is made as the first layer of an [`Rgcn`](crate::Rgcn):
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
/// `2 · hidden · bases` operations per edge; one exchange of rows.
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
    own: bool,
    #[module(skip)]
    sorted: Sorted,
}

impl OneHotConv {
    /// Coefficients by Glorot's rule, bias 0.
    pub(crate) fn new(
        relations: usize,
        bases: usize,
        hidden: usize,
        own: bool,
        device: &Device,
    ) -> Self {
        let coeff = Init::glorot(device).matrix([relations, bases]);
        Self { coeff, bias: zeros(hidden, device), own, sorted: Sorted::default() }
    }

    /// Feature size of a node.
    pub fn row_columns(&self) -> usize {
        let ([_, bases], [hidden]) = (self.coeff.val().dims(), self.bias.val().dims());
        hidden * bases + if self.own { hidden } else { 0 }
    }
}

impl HeteroLayer for OneHotConv {
    /// Rows of every node type from the rows of all nodes.
    ///
    /// # Panics
    /// Shapes or numbers of types that disagree with the graph.
    #[track_caller]
    fn forward<'a>(
        &self,
        edges: impl Into<EdgeTypes<'a>>,
        x: impl Into<NodeTensors>,
    ) -> NodeTensors {
        let edges = edges.into();
        edges.expect_bare("one_hot_conv");
        let g = edges.view();
        let rows = of_all_types("one_hot_conv", g, x.into(), |_| self.row_columns());
        let ([relations, bases], [hidden]) = (self.coeff.val().dims(), self.bias.val().dims());
        check_num_etypes("relations", g.schema(), relations);
        let sent = hidden * bases;
        let src = g.src_rows(
            "one_hot_conv",
            rows.iter().map(|x| x.clone().slice([0..x.dims()[0], 0..sent])).collect(),
        );
        let sorted = self.sorted.of(&g);
        let weights = |etypes: &[usize]| {
            let (coeff, n) = (self.coeff.val(), etypes.len());
            let ids = row_index(etypes.iter().copied(), &coeff.device());
            let coeff = coeff.select(0, ids).reshape([n, 1, bases, 1]);
            RelationalWeight::BlockDiagonal(coeff.expand([n, hidden, bases, 1]))
        };
        let sum = |Incoming { etypes, tables, index }: &Incoming| {
            relational_aggregate(
                &index.mean(),
                cat_rows(tables.iter().map(|&t| src[t].clone())),
                weights(etypes),
                None,
            )
        };
        let finish = |(t, (incoming, x)): (usize, (&Option<Incoming>, Tensor<2>))| {
            let (device, dtype) = (x.device(), x.dtype());
            let own = self.own.then(|| {
                let n = x.dims()[0];
                g.dst_rows(t, x.slice([0..n, sent..sent + hidden]))
            });
            let y = match (incoming.as_ref().map(sum), own) {
                (Some(sum), Some(own)) => sum + own,
                (Some(y), None) | (None, Some(y)) => y,
                (None, None) => Tensor::zeros([g.num_dst(t), hidden], (&device, dtype)),
            };
            add_bias(y, Some(self.bias.val()))
        };
        NodeTensors::from_list(
            g.schema(),
            sorted.iter().zip(rows).enumerate().map(finish).map(Some),
        )
    }
}
