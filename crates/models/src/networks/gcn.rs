//! Classifies nodes of homogeneous graphs with a GCN.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, GraphView};

use crate::error::ModelError;
use crate::layers::convolution::gcn_conv::{DegreeNorm, GcnConv, GcnConvConfig};
use crate::layers::layer_views::LayerViews;
use crate::networks::homogeneous::{LayerEpilogue, homogeneous_model, layer_sizes};
use crate::params::autodiff::to_device_of;
use crate::params::init::panicking_init;
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, buffers_of_layers, in_layers};

/// Describes a [`Gcn`].
#[derive(Config, Debug)]
pub struct GcnConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Number of classes.
    pub num_classes: usize,
    /// Hidden size.
    #[config(default = 16)]
    pub hidden: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub num_layers: usize,
    /// Dropout probability before every layer.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Normalisation by degree.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
}

/// Node classifier of [`GcnConv`] layers with ReLU and dropout between them (Kipf and Welling, ICLR 2017).
///
/// ```
/// use burn::module::Module;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::GcnConfig;
/// use burn_gnn_ops::GraphView;
/// let device = Device::flex().autodiff();
/// let g = Graph::homogeneous(3, vec![0, 2], vec![1, 1])?;
/// let model = GcnConfig::new(4, 2).with_hidden(16).with_dropout(0.5).init(&device);
/// let logits = model.forward(&g.at_step(7, 0), Tensor::ones([3, 4], &device)); // dropout of step 0 of seed 7
/// let predicted = model.valid().forward(&g, Tensor::ones([3, 4], &Device::flex())); // without dropout and gradients
/// assert_eq!((logits.dims(), predicted.dims()), ([3, 2], [3, 2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct Gcn {
    /// The layers, input first.
    pub layers: Vec<GcnConv>,
    #[module(skip)]
    d_input: usize,
    epilogue: LayerEpilogue,
}

impl GcnConfig {
    /// Initializes a model, weights by Glorot.
    ///
    /// # Errors
    /// A size is 0, or `dropout` is not in `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gcn, ModelError> {
        let sizes = [self.d_input, self.hidden, self.num_classes];
        let layers = layer_sizes(sizes, self.num_layers, self.dropout)?
            .into_iter()
            .map(|[i, o]| GcnConvConfig::new(i, o).with_norm(self.norm).init(device))
            .collect();
        let epilogue = LayerEpilogue::new(Activation::Relu, self.dropout, device);
        Ok(Gcn { layers, d_input: self.d_input, epilogue })
    }
}

panicking_init!(GcnConfig => Gcn);

impl Gcn {
    /// Computes logits: layer `i` runs on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: Tensor<2>) -> Tensor<2> {
        views.count("gcn", self.layers.len());
        let x = match &self.layers[0].weight {
            Some(w) => to_device_of(x, &w.val()),
            None => x,
        };
        self.epilogue.layers(&self.layers, views, self.epilogue.input(views.view(0), x))
    }

    fn layer<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.epilogue.layer(&self.layers, i, g, x)
    }

    fn d_input(&self) -> usize {
        self.d_input
    }
}

homogeneous_model!(Gcn, "gcn");

impl Pretrained for Gcn {
    /// PyG's `GCN` (set [`DegreeNorm::BothIn`] on directed graphs), and DGL models with a list `layers`.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        in_layers(&self.layers, from, path)
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        buffers_of_layers(&self.layers, from)
    }
}
