//! The graph convolution of Kipf and Welling.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, AggregateOptions, DegreeScale, GraphView, RowDropout, bias_activation, matmul_rows, weighted_aggregate};

use crate::conv::{EndRows, RelationConv, src_rows};
use crate::pretrained::{Framework, Pretrained, Their};
use crate::{Mode, init};

/// How messages are normalised by degree; a degree of 0 counts as 1.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum DegreeNorm {
    /// `l_u = r_v = 1`.
    None,
    /// `l_u = 1 / deg_out(u)`.
    Left,
    /// `r_v = 1 / deg_in(v)`.
    Right,
    /// `l_u = deg_out(u)^-1/2`, `r_v = deg_in(v)^-1/2`.
    Both,
}

impl DegreeNorm {
    /// Factors `l` of source rows and `r` of destination rows, by degrees in the whole graph.
    pub(crate) fn scales<G: GraphView + ?Sized>(self, g: &G, etype: usize) -> (Option<DegreeScale>, Option<DegreeScale>) {
        let out = |power| DegreeScale::new(&g.out_degrees(etype), power);
        let into = |power| DegreeScale::new(&g.in_degrees(etype), power);
        match self {
            Self::None => (None, None),
            Self::Left => (Some(out(-1.0)), None),
            Self::Right => (None, Some(into(-1.0))),
            Self::Both => (Some(out(-0.5)), Some(into(-0.5))),
        }
    }
}

/// Describes a [`GraphConv`].
#[derive(Config, Debug)]
pub struct GraphConvConfig {
    /// Columns of the input.
    pub d_input: usize,
    /// Columns of the output.
    pub d_output: usize,
    /// Normalisation by degree.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"graph_conv\")")]
    pub name: String,
}

/// Graph convolution, `y[v] = r_v · Σ_(u,v,e) l_u · w_e · x[u] W + b`.
///
/// `l` and `r` are set by [`DegreeNorm`]. Edge weights do not enter the degrees. Self loops are the
/// graph's affair: the paper adds them (`Graph::add_self_loops`).
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]` in edge-id order, output `[num_dst, d_output]`.
/// A destination without in-edges gets the bias.
///
/// Weights are multiplied before aggregation when that makes rows narrower, so the halo exchange and
/// the sum move `min(d_input, d_output)` columns.
///
/// # Paper
/// Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017.
#[derive(Module, Debug)]
pub struct GraphConv {
    /// `[d_input, d_output]`.
    pub weight: Param<Tensor<2>>,
    /// `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    norm: DegreeNorm,
}

impl GraphConvConfig {
    /// Weights by Glorot's rule, bias 0.
    pub fn init(&self, device: &Device) -> GraphConv {
        let weight =
            init::glorot(self.seed, &format!("{}/weight", self.name), [self.d_input, self.d_output], (self.d_input, self.d_output), device);
        GraphConv { weight, bias: self.bias.then(|| init::zeros(self.d_output, device)), norm: self.norm }
    }
}

impl GraphConv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.forward_on(g, 0, x, None)
    }

    /// On one edge type; `x` holds input rows of its source type, `edge_weight` one number per edge.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: Tensor<2>, edge_weight: Option<Tensor<1>>) -> Tensor<2> {
        self.forward_then(g, etype, x, edge_weight, Activation::None, None)
    }

    /// [`forward_on`](Self::forward_on), then an activation and dropout of the result. Where the layer
    /// multiplies first, factors, bias and activation are part of the one pass over the edges; where it
    /// aggregates first, bias, activation and dropout are one pass over the product.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward_then<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: usize,
        x: Tensor<2>,
        edge_weight: Option<Tensor<1>>,
        activation: Activation,
        dropout: Option<&RowDropout>,
    ) -> Tensor<2> {
        let src = src_rows(g, "graph_conv", g.schema().ends(etype).0, self.project(x));
        self.finish(g, etype, src, edge_weight, activation, dropout)
    }

    /// Whether the weight comes before the sum.
    fn multiplies_first(&self) -> bool {
        let [d_input, d_output] = self.weight.val().dims();
        d_input > d_output
    }

    #[track_caller]
    fn finish<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: usize,
        h: Tensor<2>,
        edge_weight: Option<Tensor<1>>,
        activation: Activation,
        dropout: Option<&RowDropout>,
    ) -> Tensor<2> {
        let (source, destination) = self.norm.scales(g, etype);
        let bias = self.bias.as_ref().map(|b| b.val());
        if self.multiplies_first() {
            let options = AggregateOptions { source, destination, activation };
            let h = weighted_aggregate(g.relation(etype), h, edge_weight, bias, &options);
            return match dropout {
                Some(_) => bias_activation(h, None, Activation::None, dropout),
                None => h,
            };
        }
        let options = AggregateOptions { source, destination, activation: Activation::None };
        let h = matmul_rows(weighted_aggregate(g.relation(etype), h, edge_weight, None, &options), self.weight.val());
        bias_activation(h, bias, activation, dropout)
    }
}

impl RelationConv for GraphConv {
    fn project(&self, x: Tensor<2>) -> Tensor<2> {
        if self.multiplies_first() { matmul_rows(x, self.weight.val()) } else { x }
    }

    #[track_caller]
    fn aggregate<G: GraphView + ?Sized>(&self, g: &G, etype: usize, rows: EndRows, _mode: Mode) -> Tensor<2> {
        self.finish(g, etype, rows.src, None, Activation::None, None)
    }
}

impl Pretrained for GraphConv {
    fn their(&self, from: Framework, path: &str) -> Their {
        match (from, path) {
            (Framework::Pyg, "weight") => Their::transposed("lin.weight"),
            _ => Their::same(path),
        }
    }
}
