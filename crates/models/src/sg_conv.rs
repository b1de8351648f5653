//! Simplified graph convolution.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, AggregateOptions, GraphView, bias_activation, matmul_rows, weighted_aggregate};

use crate::conv::{check_hops, src_rows};
use crate::pretrained::{Framework, Pretrained, Their};
use crate::{DegreeNorm, init};

/// Describes an [`SgConv`].
#[derive(Config, Debug)]
pub struct SgConvConfig {
    /// Columns of the input.
    pub d_input: usize,
    /// Columns of the output.
    pub d_output: usize,
    /// Number of hops.
    #[config(default = 1)]
    pub hops: usize,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"sg_conv\")")]
    pub name: String,
}

/// Simplified graph convolution, `y = Âᵏ x W + b` with `Â[u, v] = w_e / sqrt(deg_out(u) deg_in(v))`.
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]`, output `[num_dst, d_output]`. With more than one hop all input rows must
/// be computed rows: a whole graph or a partition, no block.
///
/// # Departures from the paper
/// None; self loops are the graph's affair (the paper adds them). On directed graphs DGL takes in-degrees at both ends.
///
/// # Cost
/// One pass over the edges and one exchange per hop, with `min(d_input, d_output)` columns. `Âᵏ x` does not change
/// during training: who trains long computes it once (a layer of no hops is then a linear map).
///
/// # Paper
/// Wu, Zhang, de Souza, Fifty, Yu, Weinberger, "Simplifying graph convolutional networks", ICML 2019.
#[derive(Module, Debug)]
pub struct SgConv {
    /// `[d_input, d_output]`.
    pub weight: Param<Tensor<2>>,
    /// `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    hops: usize,
}

impl SgConvConfig {
    /// Weights by Glorot's rule, bias 0.
    pub fn init(&self, device: &Device) -> SgConv {
        let (shape, fan) = ([self.d_input, self.d_output], (self.d_input, self.d_output));
        let weight = init::glorot(self.seed, &format!("{}/weight", self.name), shape, fan, device);
        SgConv { weight, bias: self.bias.then(|| init::zeros(self.d_output, device)), hops: self.hops }
    }
}

impl SgConv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>) -> Tensor<2> {
        self.forward_on(g, 0, x, None)
    }

    /// On one edge type that joins nodes of one type, with one weight per edge or none.
    ///
    /// # Panics
    /// Shapes that disagree with the graph, an edge type between two node types or a block under several hops.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: Tensor<2>, edge_weight: Option<Tensor<1>>) -> Tensor<2> {
        if self.hops > 1 {
            check_hops(g, "sg_conv", etype, &x);
        }
        let [d_input, d_output] = self.weight.val().dims();
        let first = d_input > d_output;
        let x = if first { matmul_rows(x, self.weight.val()) } else { x };
        let (source, destination) = DegreeNorm::Both.scales(g, etype);
        let options = AggregateOptions { source, destination, ..Default::default() };
        let (ntype, relation) = (g.schema().ends(etype).0, g.relation(etype));
        let x = (0..self.hops)
            .fold(x, |x, _| weighted_aggregate(relation, src_rows(g, "sg_conv", ntype, x), edge_weight.clone(), None, &options));
        let y = if first { x } else { matmul_rows(x, self.weight.val()) };
        bias_activation(y, self.bias.as_ref().map(|b| b.val()), Activation::None, None)
    }
}

impl Pretrained for SgConv {
    fn their(&self, from: Framework, path: &str) -> Their {
        let module = if from == Framework::Dgl { "fc" } else { "lin" };
        match path {
            "weight" => Their::transposed(format!("{module}.weight")),
            _ => Their::same(format!("{module}.{path}")),
        }
    }
}
