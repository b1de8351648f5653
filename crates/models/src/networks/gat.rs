//! Classifies nodes of homogeneous graphs with a GAT.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, GraphView};

use crate::error::ModelError;
use crate::layers::attention::gat_conv::{GatConv, GatConvConfig};
use crate::layers::layer_views::LayerViews;
use crate::networks::homogeneous::{LayerEpilogue, one_type_model};
use crate::params::autodiff::beside;
use crate::params::init::panicking_init;
use crate::pretrained::{
    Buffer, Framework, ParamMapping, Pretrained, buffers_of_layers, in_layers,
};

/// Describes a [`Gat`].
#[derive(Config, Debug)]
pub struct GatConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Number of classes.
    pub num_classes: usize,
    /// Output feature size of each head in hidden layers.
    #[config(default = 8)]
    pub d_head: usize,
    /// Heads of every layer but the last.
    #[config(default = 8)]
    pub num_heads: usize,
    /// Heads of the last layer, which are averaged.
    #[config(default = 1)]
    pub out_heads: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub num_layers: usize,
    /// Dropout before every layer.
    #[config(default = 0.6)]
    pub dropout: f64,
    /// Dropout of attention weights.
    #[config(default = 0.6)]
    pub attn_dropout: f64,
    /// Whether layers have residual connections.
    #[config(default = false)]
    pub residual: bool,
    /// Whether features are added to the results of all layers, the first too, through a weight, as in PyTorch
    /// Geometric.
    #[config(default = false)]
    pub residual_weight: bool,
    /// Feature size of edges in the attention scores of every layer (`edge_dim` of PyTorch Geometric), if there are any:
    /// the graph is then `g.edge_types().with_features(.., f)?`.
    pub d_edge: Option<usize>,
    /// Whether ReLU stands between layers, as in PyTorch Geometric, in place of ELU.
    #[config(default = false)]
    pub relu: bool,
}

/// `layers` attention layers with ELU (or ReLU) and dropout between them (Veličković et al., ICLR 2018).
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::GatConfig;
/// use burn_gnn_ops::GraphView;
/// let device = Device::flex().autodiff();
/// let g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
/// let model = GatConfig::new(4, 2).with_d_head(8).with_num_heads(4).with_dropout(0.5).init(&device);
/// let logits = model.forward(&g.at_step(7, 0), Tensor::ones([3, 4], &device)); // dropout of step 0 of seed 7
/// let predicted = model.valid().forward(&g, Tensor::ones([3, 4], &Device::flex())); // without dropout and gradients
/// assert_eq!((logits.dims(), predicted.dims()), ([3, 2], [3, 2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Gat {
    /// The layers, input first.
    pub layers: Vec<GatConv>,
    epilogue: LayerEpilogue,
}

impl GatConfig {
    /// Weights by Glorot's rule.
    ///
    /// # Errors
    /// A size of 0, or dropout outside `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gat, ModelError> {
        let sizes = [
            ("d_input", self.d_input),
            ("num_layers", self.num_layers),
            ("num_classes", self.num_classes),
        ];
        ModelError::check_sizes(&sizes, self.dropout)?;
        let layer = |i: usize| {
            let last = i + 1 == self.num_layers;
            let d_input = if i == 0 { self.d_input } else { self.num_heads * self.d_head };
            let (d_head, heads) = if last {
                (self.num_classes, self.out_heads)
            } else {
                (self.d_head, self.num_heads)
            };
            GatConvConfig::new(d_input, d_head, heads)
                .with_concat(!last)
                .with_d_edge(self.d_edge)
                .with_dropout(self.attn_dropout)
                .with_residual(self.residual && i > 0)
                .with_residual_weight(self.residual_weight)
                .try_init(device)
        };
        let layers = (0..self.num_layers).map(layer).collect::<Result<_, _>>()?;
        let activation = if self.relu { Activation::Relu } else { Activation::Elu(1.0) };
        Ok(Gat { layers, epilogue: LayerEpilogue::new(activation, self.dropout, device) })
    }
}

panicking_init!(GatConfig => Gat);

impl Gat {
    /// Layer `i` on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: Tensor<2>) -> Tensor<2> {
        views.count("gat", self.layers.len());
        let x = beside(x, &self.layers[0].fc.weight.val());
        self.epilogue.layers(&self.layers, views, self.epilogue.input(views.view(0), x))
    }

    fn layer<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.epilogue.layer(&self.layers, i, g, x)
    }

    fn d_input(&self) -> usize {
        self.layers[0].fc.weight.val().dims()[0]
    }
}

one_type_model!(Gat, "gat");

impl Pretrained for Gat {
    /// PyG's `GAT` (take `relu`, `out_heads` as `heads`, for `residual` there `residual_weight`), and of DGL a model
    /// with its layers in a list `layers`.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        in_layers(&self.layers, from, path)
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        buffers_of_layers(&self.layers, from)
    }
}
