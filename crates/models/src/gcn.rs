//! GCN for node classification on graphs of one type.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_graph::Graph;
use burn_gnn_ops::{Activation, GraphView};

use crate::inference::{Layerwise, one_input, only};
use crate::{DegreeNorm, GraphConv, GraphConvConfig, Mode, ModelError, NodeClassifier};

/// Describes a [`Gcn`].
#[derive(Config, Debug)]
pub struct GcnConfig {
    /// Columns of the input features.
    pub d_input: usize,
    /// Number of classes.
    pub num_classes: usize,
    /// Columns between layers.
    #[config(default = 16)]
    pub hidden: usize,
    /// Number of layers.
    #[config(default = 2)]
    pub layers: usize,
    /// Dropout before every layer.
    #[config(default = 0.5)]
    pub dropout: f64,
    /// Normalisation by degree.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
}

/// `layers` graph convolutions with ReLU and dropout between them (Kipf and Welling, ICLR 2017).
#[derive(Module, Debug)]
pub struct Gcn {
    /// The layers, input first.
    pub layers: Vec<GraphConv>,
    #[module(skip)]
    dropout: f64,
}

impl GcnConfig {
    /// Weights by Glorot's rule.
    ///
    /// # Errors
    /// A size of 0, or dropout outside `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<Gcn, ModelError> {
        let sizes = [("d_input", self.d_input), ("layers", self.layers), ("hidden", self.hidden), ("num_classes", self.num_classes)];
        ModelError::check_sizes(&sizes, self.dropout)?;
        let width = |i: usize| if i == 0 { self.d_input } else { self.hidden };
        let out = |i: usize| if i + 1 == self.layers { self.num_classes } else { self.hidden };
        let layers = (0..self.layers)
            .map(|i| {
                GraphConvConfig::new(width(i), out(i)).with_norm(self.norm).with_seed(self.seed).with_name(format!("gcn/{i}")).init(device)
            })
            .collect();
        Ok(Gcn { layers, dropout: self.dropout })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> Gcn {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl Gcn {
    /// Logits `[num_dst, num_classes]` from `x: [num_input, d_input]`.
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, mode: Mode) -> Tensor<2> {
        let (ntype, _) = g.schema().ends(0);
        let x = mode.dropout(g, ntype, "gcn/0", self.dropout, x);
        (0..self.layers.len()).fold(x, |x, i| self.step(i, g, x, mode))
    }

    /// Layer `i`; with ReLU, and the dropout before the next layer, unless it is the last.
    fn step<G: GraphView + ?Sized>(&self, i: usize, g: &G, x: Tensor<2>, mode: Mode) -> Tensor<2> {
        if i + 1 == self.layers.len() {
            return self.layers[i].forward(g, x);
        }
        let dropout = mode.row_dropout(g, g.schema().ends(0).0, &format!("gcn/{}", i + 1), self.dropout);
        self.layers[i].forward_then(g, 0, x, None, Activation::Relu, dropout.as_ref())
    }
}

impl Layerwise for Gcn {
    fn num_layers(&self) -> usize {
        self.layers.len()
    }
    fn inputs(&self, g: &Graph, features: &[Option<Tensor<2>>]) -> Result<Vec<Tensor<2>>, ModelError> {
        one_input(g, features, self.layers[0].weight.val().dims()[0])
    }
    fn layer<G: GraphView + ?Sized>(&self, layer: usize, g: &G, x: Vec<Tensor<2>>) -> Vec<Tensor<2>> {
        vec![self.step(layer, g, only(x), Mode::Eval)]
    }
}

impl NodeClassifier for Gcn {
    type Dense = Self;
    fn logits<G: GraphView + ?Sized>(&self, g: &G, x: &[Option<Tensor<2>>], target: usize, mode: Mode) -> Tensor<2> {
        let x = x[target].clone().unwrap_or_else(|| panic!("`Gcn` needs features of node type {target}"));
        self.forward(g, x, mode)
    }
    fn dense(&self) -> &Self {
        self
    }
}
