//! The networks of the training entries: two layers each, as the peer's.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn::graph::{Graph, Relation};
use burn_gnn::models::{GraphConv, GraphConvConfig};
use burn_gnn::ops::{Activation, GatOptions, RowDropout, Stream, bias_activation, copy_u_mean, gat_attention, glorot_uniform, matmul_rows, matmul_rows_onto};

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
    fn forward(&self, g: &Input, x: Tensor<2>, step: Option<u64>) -> Tensor<2>;
}

/// The graph; more may be added that is made once.
pub(crate) struct Input {
    pub(crate) graph: Graph,
}

impl Input {
    pub(crate) fn new(graph: Graph) -> Self {
        Self { graph }
    }
    fn relation(&self) -> &Relation {
        &self.graph.relations()[0]
    }
}

fn weight<const D: usize>(name: &str, fan: (usize, usize), shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    Param::from_tensor(Tensor::from_data(glorot_uniform(Stream::new(0, name, 0), fan.0, fan.1, shape), device))
}

fn zeros(n: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_tensor(Tensor::zeros([n], device))
}

/// In training half of the entries are dropped.
fn half(step: Option<u64>) -> Option<RowDropout> {
    step.map(|step| RowDropout { prob: 0.5, stream: Stream::new(0, "hidden", step), ids: None })
}

/// Bias, activation and dropout in one pass.
fn finish(x: Tensor<2>, bias: &Param<Tensor<1>>, f: Activation, step: Option<u64>) -> Tensor<2> {
    bias_activation(x, Some(bias.val()), f, half(step).as_ref())
}

/// Graph convolutions with symmetric normalisation.
#[derive(Module, Debug)]
pub(crate) struct Gcn {
    first: GraphConv,
    second: GraphConv,
}

impl Gcn {
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        let layer = |i, o, name: &str| GraphConvConfig::new(i, o).with_name(name.into()).init(device);
        Self { first: layer(s.input, s.hidden, "first"), second: layer(s.hidden, s.classes, "second") }
    }
}

impl Network for Gcn {
    fn forward(&self, g: &Input, x: Tensor<2>, step: Option<u64>) -> Tensor<2> {
        let h = self.first.forward_then(&g.graph, 0, x, None, Activation::Relu, half(step).as_ref());
        self.second.forward(&g.graph, h)
    }
}

/// A layer of GraphSAGE (Hamilton, Ying, Leskovec, NeurIPS 2017) with the mean of the neighbours.
#[derive(Module, Debug)]
struct SageLayer {
    own: Param<Tensor<2>>,
    neighbours: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl SageLayer {
    fn new(i: usize, o: usize, name: &str, device: &Device) -> Self {
        let matrix = |part: &str| weight(&format!("{name}/{part}"), (i, o), [i, o], device);
        Self { own: matrix("own"), neighbours: matrix("neighbours"), bias: zeros(o, device) }
    }

    fn forward(&self, relation: &Relation, x: Tensor<2>, f: Activation, step: Option<u64>) -> Tensor<2> {
        let w = self.neighbours.val();
        let [i, o] = w.dims();
        // The narrower side is aggregated.
        let mean = if i > o { copy_u_mean(relation, matmul_rows(x.clone(), w)) } else { matmul_rows(copy_u_mean(relation, x.clone()), w) };
        finish(matmul_rows_onto(x, self.own.val(), mean), &self.bias, f, step)
    }
}

#[derive(Module, Debug)]
pub(crate) struct Sage {
    first: SageLayer,
    second: SageLayer,
}

impl Sage {
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        Self { first: SageLayer::new(s.input, s.hidden, "first", device), second: SageLayer::new(s.hidden, s.classes, "second", device) }
    }
}

impl Network for Sage {
    fn forward(&self, g: &Input, x: Tensor<2>, step: Option<u64>) -> Tensor<2> {
        let h = self.first.forward(g.relation(), x, Activation::Relu, step);
        self.second.forward(g.relation(), h, Activation::None, None)
    }
}

/// A layer of graph attention (Veličković et al., ICLR 2018).
#[derive(Module, Debug)]
struct GatLayer {
    weight: Param<Tensor<2>>,
    attention_src: Param<Tensor<3>>,
    attention_dst: Param<Tensor<3>>,
    bias: Param<Tensor<1>>,
}

impl GatLayer {
    fn new(i: usize, heads: usize, width: usize, name: &str, device: &Device) -> Self {
        let o = heads * width;
        let attention = |part: &str| weight(&format!("{name}/{part}"), (width, 1), [1, heads, width], device);
        Self {
            weight: weight(&format!("{name}/weight"), (i, o), [i, o], device),
            attention_src: attention("src"),
            attention_dst: attention("dst"),
            bias: zeros(o, device),
        }
    }

    /// `[n, heads · width]`.
    fn forward(&self, g: &Input, x: Tensor<2>, f: Activation, step: Option<u64>) -> Tensor<2> {
        let [_, heads, width] = self.attention_src.val().dims();
        let h = matmul_rows(x, self.weight.val());
        let n = h.dims()[0];
        let z = h.reshape([n, heads, width]);
        let score = |a: &Param<Tensor<3>>| (z.clone() * a.val()).sum_dim(2).reshape([n, heads]);
        let out = gat_attention(g.relation(), z.clone(), score(&self.attention_src), score(&self.attention_dst), &GatOptions::default());
        finish(out.reshape([n, heads * width]), &self.bias, f, step)
    }
}

#[derive(Module, Debug)]
pub(crate) struct Gat {
    first: GatLayer,
    second: GatLayer,
}

impl Gat {
    /// 8 heads of 8 columns, then one head per class column.
    pub(crate) fn new(s: Sizes, device: &Device) -> Self {
        Self { first: GatLayer::new(s.input, 8, 8, "first", device), second: GatLayer::new(64, 1, s.classes, "second", device) }
    }
}

impl Network for Gat {
    fn forward(&self, g: &Input, x: Tensor<2>, step: Option<u64>) -> Tensor<2> {
        let h = self.first.forward(g, x, Activation::Elu(1.0), step);
        self.second.forward(g, h, Activation::None, None)
    }
}
