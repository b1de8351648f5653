//! Classifies nodes of homogeneous graphs with a GCN.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_graph::internal::OrPanic;
use burn_gnn_ops::{Activation, Edges, GraphView};
use burn_gnn_sampling::Block;

use crate::autodiff::beside;
use crate::conv::Conv;
use crate::inference::{Layerwise, one_input, only, only_type};
use crate::pretrained::{
    Buffer, Framework, ParamMapping, Pretrained, buffers_of_layers, in_layers,
};
use crate::type_map::{NodeTensors, features_of};
use crate::{
    DegreeNorm, DropoutKey, GcnConv, GcnConvConfig, LayerViews, ModelError, NodeClassifier, Whole,
};

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
    /// Dropout before every layer.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Normalisation by degree.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
}

/// `layers` graph convolutions with ReLU and dropout between them (Kipf and Welling, ICLR 2017).
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
    dropout: f64,
    #[module(skip)]
    d_input: usize,
    #[module(skip)]
    key: DropoutKey,
}

impl GcnConfig {
    /// Weights by Glorot's rule.
    ///
    /// # Errors
    /// A size of 0, or dropout outside `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gcn, ModelError> {
        let sizes = [
            ("d_input", self.d_input),
            ("num_layers", self.num_layers),
            ("hidden", self.hidden),
            ("num_classes", self.num_classes),
        ];
        ModelError::check_sizes(&sizes, self.dropout)?;
        let width = |i: usize| if i == 0 { self.d_input } else { self.hidden };
        let out = |i: usize| if i + 1 == self.num_layers { self.num_classes } else { self.hidden };
        let layers = (0..self.num_layers)
            .map(|i| GcnConvConfig::new(width(i), out(i)).with_norm(self.norm).init(device))
            .collect();
        Ok(Gcn {
            layers,
            dropout: self.dropout,
            d_input: self.d_input,
            key: DropoutKey::new(device),
        })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Gcn {
        self.try_init(device).or_panic()
    }
}

impl Gcn {
    /// Logits `[num_dst, num_classes]` from `x: [num_input, d_input]`.
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.over(&Whole(g), x)
    }

    /// Logits of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), `[num_seeds, num_classes]`: layer `i` on
    /// block `i`, `x` the features of its input nodes.
    ///
    /// # Panics
    /// Not one block per layer.
    #[track_caller]
    pub fn forward_blocks(&self, blocks: &[Block], x: Tensor<2>) -> Tensor<2> {
        self.over(blocks, x)
    }

    /// Layer `i` on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, x: Tensor<2>) -> Tensor<2> {
        views.count("gcn", self.layers.len());
        let g = views.view(0);
        let x = match &self.layers[0].weight {
            Some(w) => beside(x, &w.val()),
            None => x,
        };
        let x = self.key.at(0).dropout(&g, g.schema().endpoints(0).0, self.dropout, x);
        (0..self.layers.len()).fold(x, |x, i| self.step(i, views.view(i), x))
    }

    /// Layer `i`; with ReLU, and the dropout before the next layer, unless it is the last.
    fn step<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>) -> Tensor<2> {
        let edges = Edges::from(&g);
        if i + 1 == self.layers.len() {
            return self.layers[i].forward(edges, x);
        }
        self.layers[i]
            .forward(edges.then(Activation::Relu).then_dropout(self.key.at(i + 1), self.dropout), x)
    }
}

impl Layerwise for Gcn {
    fn num_layers(&self) -> usize {
        self.layers.len()
    }
    fn inputs(&self, g: &Graph, features: &NodeTensors) -> Result<NodeTensors, ModelError> {
        one_input(g, features, self.d_input)
    }
    fn layer<G: GraphView + ?Sized>(&self, layer: usize, g: &G, x: NodeTensors) -> NodeTensors {
        only_type(g, self.step(layer, g, only(x)))
    }
}

impl NodeClassifier for Gcn {
    type Dense = Self;
    #[track_caller]
    fn logits_over<V: LayerViews + ?Sized>(
        &self,
        views: &V,
        x: &NodeTensors,
        target: &str,
    ) -> Tensor<2> {
        self.over(views, features_of("gcn", views.view(0).schema(), x, target))
    }
    fn dense(&self) -> &Self {
        self
    }
    fn feature_sizes(&self, target: &str) -> Vec<(String, usize)> {
        vec![(target.to_owned(), self.d_input)]
    }
}

impl Pretrained for Gcn {
    /// PyG's `GCN`, which on directed graphs takes [`DegreeNorm::BothIn`], and of DGL a model with its layers in a list
    /// `layers`.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        in_layers(&self.layers, from, path).unwrap_or_else(|| ParamMapping::same(path))
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        buffers_of_layers(&self.layers, from)
    }
}
