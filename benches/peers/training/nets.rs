//! Defines the networks of the training entries: two layers each, as in the other systems.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn::models::{
    Conv, DropoutKey, GatConv, GatConvConfig, GcnConv, GcnConvConfig, SageConv, SageConvConfig,
};
use burn_gnn::ops::{Activation, Edges};

/// Widths of a network.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) input: usize,
    pub(crate) hidden: usize,
    pub(crate) classes: usize,
}

/// A network for the nodes of a graph of one type.
pub(crate) trait Network: Module {
    /// Logits.
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: Tensor<2>) -> Tensor<2>;
}

/// The edges of the first layer: in training half of the hidden features are dropped.
fn first<'a>(edges: &Edges<'a>, activation: Activation, key: &DropoutKey) -> Edges<'a> {
    edges.clone().then(activation).then_dropout(key, 0.5)
}

/// Graph convolutions with symmetric normalisation.
#[derive(Module, Debug)]
pub(crate) struct Gcn {
    first: GcnConv,
    second: GcnConv,
    key: DropoutKey,
}

impl Gcn {
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o| GcnConvConfig::new(i, o).init(device);
        Self {
            first: layer(s.input, s.hidden),
            second: layer(s.hidden, s.classes),
            key: DropoutKey::new(device),
        }
    }
}

impl Network for Gcn {
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: Tensor<2>) -> Tensor<2> {
        let edges = edges.into();
        let h = self.first.forward(first(&edges, Activation::Relu, &self.key), x);
        self.second.forward(edges, h)
    }
}

#[derive(Module, Debug)]
pub(crate) struct Sage {
    first: SageConv,
    second: SageConv,
    key: DropoutKey,
}

impl Sage {
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o| SageConvConfig::new(i, o).init(device);
        Self {
            first: layer(s.input, s.hidden),
            second: layer(s.hidden, s.classes),
            key: DropoutKey::new(device),
        }
    }
}

impl Network for Sage {
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: Tensor<2>) -> Tensor<2> {
        let edges = edges.into();
        let h = self.first.forward(first(&edges, Activation::Relu, &self.key), x);
        self.second.forward(edges, h)
    }
}

/// Graph attention.
#[derive(Module, Debug)]
pub(crate) struct Gat {
    first: GatConv,
    second: GatConv,
    key: DropoutKey,
}

impl Gat {
    /// 8 heads of 8 columns, then one head per class column.
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o, heads| GatConvConfig::new(i, o, heads).init(device);
        Self {
            first: layer(s.input, 8, 8),
            second: layer(64, s.classes, 1),
            key: DropoutKey::new(device),
        }
    }
}

impl Network for Gat {
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: Tensor<2>) -> Tensor<2> {
        let edges = edges.into();
        // Dropout as in the peer: only of hidden features.
        let h = self.first.forward(first(&edges, Activation::Elu(1.0), &self.key), x);
        self.second.forward(edges, h)
    }
}
