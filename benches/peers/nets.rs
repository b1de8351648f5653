//! The networks of the training entries: two layers each, as the peer's.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn::graph::Graph;
use burn_gnn::models::{GatConv, GatConvConfig, GraphConv, GraphConvConfig, Mode, SageConv, SageConvConfig};
use burn_gnn::ops::{Activation, RowDropout, Stream};

/// Widths of a network.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) input: usize,
    pub(crate) hidden: usize,
    pub(crate) classes: usize,
}

/// A network for the nodes of a graph of one type.
pub(crate) trait Network: Module {
    /// Logits; `step` numbers the dropout masks, `None` is for inference.
    fn forward(&self, g: &Graph, x: Tensor<2>, step: Option<u64>) -> Tensor<2>;
}

/// In training half of the entries are dropped.
fn half(step: Option<u64>) -> Option<RowDropout> {
    step.map(|step| RowDropout { prob: 0.5, stream: Stream::new(0, "hidden", step), ids: None })
}

/// Graph convolutions with symmetric normalisation.
#[derive(Module, Debug)]
pub(crate) struct Gcn {
    first: GraphConv,
    second: GraphConv,
}

impl Gcn {
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o| GraphConvConfig::new(i, o).init(device);
        Self { first: layer(s.input, s.hidden), second: layer(s.hidden, s.classes) }
    }
}

impl Network for Gcn {
    fn forward(&self, g: &Graph, x: Tensor<2>, step: Option<u64>) -> Tensor<2> {
        let h = self.first.forward_then(g, 0, x, None, Activation::Relu, half(step).as_ref());
        self.second.forward(g, h)
    }
}

#[derive(Module, Debug)]
pub(crate) struct Sage {
    first: SageConv,
    second: SageConv,
}

impl Sage {
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o| SageConvConfig::new(i, o).init(device);
        Self { first: layer(s.input, s.hidden), second: layer(s.hidden, s.classes) }
    }
}

impl Network for Sage {
    fn forward(&self, g: &Graph, x: Tensor<2>, step: Option<u64>) -> Tensor<2> {
        let h = self.first.forward_then(g, 0, x, None, Activation::Relu, half(step).as_ref());
        self.second.forward(g, h)
    }
}

/// Graph attention.
#[derive(Module, Debug)]
pub(crate) struct Gat {
    first: GatConv,
    second: GatConv,
}

impl Gat {
    /// 8 heads of 8 columns, then one head per class column.
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o, heads| GatConvConfig::new(i, o, heads).init(device);
        Self { first: layer(s.input, 8, 8), second: layer(64, s.classes, 1) }
    }
}

impl Network for Gat {
    fn forward(&self, g: &Graph, x: Tensor<2>, step: Option<u64>) -> Tensor<2> {
        // Dropout as the peer has it: of hidden rows only.
        let h = self.first.forward_then(g, 0, x, None, Mode::Eval, Activation::Elu(1.0), half(step).as_ref());
        self.second.forward(g, h, Mode::Eval)
    }
}
