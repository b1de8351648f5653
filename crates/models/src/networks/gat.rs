//! Classifies nodes of homogeneous graphs with a GAT.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, GraphView};

use crate::error::ModelError;
use crate::layers::attention::gat_conv::{GatConv, GatConvConfig};
use crate::layers::layer_views::LayerViews;
use crate::networks::homogeneous::{LayerEpilogue, homogeneous_model};
use crate::params::autodiff::to_device_of;
use crate::params::init::panicking_init;
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, buffers_of_layers, in_layers};

/// Describes a [`Gat`].
#[derive(Config, Debug)]
pub struct GatConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Number of classes.
    pub num_classes: usize,
    /// Hidden size, the feature size of all heads of a layer together; a multiple of `num_heads`.
    #[config(default = 64)]
    pub hidden: usize,
    /// Number of heads of every layer but the last.
    #[config(default = 8)]
    pub num_heads: usize,
    /// Number of heads of the last layer, whose outputs are averaged.
    #[config(default = 1)]
    pub out_heads: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub num_layers: usize,
    /// Dropout probability before every layer.
    #[config(default = 0.6)]
    pub dropout: f64,
    /// Dropout probability of attention weights.
    #[config(default = 0.6)]
    pub attn_dropout: f64,
    /// Whether layers have residual connections.
    #[config(default = false)]
    pub residual: bool,
    /// Whether all layers, including the first, have residual connections with a weight, as in PyTorch Geometric.
    #[config(default = false)]
    pub residual_weight: bool,
    /// Feature size of edges, if attention scores depend on edge features (`edge_dim` of PyTorch Geometric). The view must
    /// then have edge features: `g.edge_types().with_features(.., f)?`.
    pub d_edge: Option<usize>,
    /// Whether the activation between layers is ReLU, as in PyTorch Geometric, instead of ELU.
    #[config(default = false)]
    pub relu: bool,
}

/// Node classifier of [`GatConv`] layers with ELU (or ReLU) and dropout between them (Veličković et al., ICLR 2018).
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::GatConfig;
/// use burn_gnn_ops::GraphView;
/// let device = Device::flex().autodiff();
/// let g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
/// let model = GatConfig::new(4, 2).with_hidden(32).with_num_heads(4).with_dropout(0.5).init(&device);
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
    /// Initializes a model, weights by Glorot.
    ///
    /// # Errors
    /// A size is 0, `num_heads` does not divide `hidden`, or a dropout probability is not in `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gat, ModelError> {
        let sizes = [
            ("d_input", self.d_input),
            ("num_layers", self.num_layers),
            ("hidden", self.hidden),
            ("num_heads", self.num_heads),
            ("num_classes", self.num_classes),
        ];
        ModelError::check_sizes(&sizes, self.dropout)?;
        ModelError::check_divides(("num_heads", self.num_heads), ("hidden", self.hidden))?;
        let layer = |i: usize| {
            let last = i + 1 == self.num_layers;
            let d_input = if i == 0 { self.d_input } else { self.hidden };
            let (d_head, heads) = if last {
                (self.num_classes, self.out_heads)
            } else {
                (self.hidden / self.num_heads, self.num_heads)
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
    /// Computes logits: layer `i` runs on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: Tensor<2>) -> Tensor<2> {
        views.count("gat", self.layers.len());
        let x = to_device_of(x, &self.layers[0].fc.weight.val());
        self.epilogue.layers(&self.layers, views, self.epilogue.input(views.view(0), x))
    }

    fn layer<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.epilogue.layer(&self.layers, i, g, x)
    }

    fn d_input(&self) -> usize {
        self.layers[0].fc.weight.val().dims()[0]
    }
}

homogeneous_model!(Gat, "gat");

impl Pretrained for Gat {
    /// PyG's `GAT` (set `relu`, `out_heads` to its `heads`, and `residual_weight` for its `residual`), and DGL models with
    /// a list `layers`.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        in_layers(&self.layers, from, path)
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        buffers_of_layers(&self.layers, from)
    }
}
