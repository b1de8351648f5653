//! Simplified graph convolution.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Activation, GraphView, bias_activation, matmul_rows, weighted_aggregate};
use burn_gnn_sampling::Block;

use crate::conv::{check_computed, check_one_type, check_weights, src_rows};
use crate::edge_weight_norm::edge_norms;
use crate::pretrained::{Framework, ParamMapping, Pretrained};
use crate::{DegreeNorm, LayerViews, Whole, init};

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
    /// What messages are normalised by. DGL's `SGConv` has [`DegreeNorm::BothIn`], with edge weights `Both`; PyTorch
    /// Geometric `BothIn`.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether the degrees of `norm` are sums of edge weights ([`EdgeWeightNorm`](crate::EdgeWeightNorm)), as in DGL and PyTorch
    /// Geometric; otherwise edge weights multiply messages and degrees count edges.
    #[config(default = false)]
    pub weighted_norm: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
}

/// Simplified graph convolution, `y = Âᵏ x W + b` with `Â[u, v] = w_e / sqrt(deg_out(u) deg_in(v))`.
///
/// Degrees are those of the whole graph. `norm` takes others ([`DegreeNorm`]), `weighted_norm` sums of edge weights in their place,
/// where weights are given.
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]`, output `[num_dst, d_output]`. With more than one hop all input rows must
/// be computed rows, on a whole graph or a partition, or every hop has a block ([`forward_blocks`](Self::forward_blocks)).
///
/// # Departures from the paper
/// None; the caller must add self loops, as the paper does (`Graph::add_self_loops`).
///
/// # Cost
/// One pass over the edges and one exchange per hop, with `min(d_input, d_output)` columns. `Âᵏ x` does not change
/// during training: who trains long computes it once (a layer of no hops is then a linear map). `weighted_norm` normalises weights in
/// every call.
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
    #[module(skip)]
    norm: (DegreeNorm, bool),
}

impl SgConvConfig {
    /// Weights by Glorot's rule, bias 0.
    pub fn init(&self, device: &Device) -> SgConv {
        let weight = init::glorot([self.d_input, self.d_output], (self.d_input, self.d_output), device);
        let bias = self.bias.then(|| init::zeros(self.d_output, device));
        SgConv { weight, bias, hops: self.hops, norm: (self.norm, self.weighted_norm) }
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
    /// Shapes that disagree with the graph, an edge type between two node types or a block under several hops, what `norm` refuses.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: Tensor<2>, edge_weight: Option<Tensor<1>>) -> Tensor<2> {
        self.over(&Whole(g), etype, x, edge_weight.as_ref().map(std::slice::from_ref))
    }

    /// Rows of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), hop `i` on block `i`: `x` are the rows of its input nodes,
    /// `edge_weights` one weight per edge of each block, or none. With all neighbours these are the rows of the graph.
    ///
    /// # Panics
    /// Not one block (and tensor of weights) per hop; as [`forward_on`](Self::forward_on).
    #[track_caller]
    pub fn forward_blocks(&self, blocks: &[Block], etype: usize, x: Tensor<2>, edge_weights: Option<&[Tensor<1>]>) -> Tensor<2> {
        self.over(blocks, etype, x, edge_weights)
    }

    /// Hop `i` on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(&self, views: &V, etype: usize, x: Tensor<2>, edge_weights: Option<&[Tensor<1>]>) -> Tensor<2> {
        let count = views.count("sg_conv", self.hops);
        check_weights("sg_conv", count, edge_weights);
        if self.hops > 1 {
            let g = views.view(0);
            check_one_type(g, "sg_conv", etype);
            if count == 1 {
                check_computed(g, "sg_conv", g.schema().ends(etype).0, &x);
            }
        }
        let [d_input, d_output] = self.weight.val().dims();
        let first = d_input > d_output;
        let x = if first { matmul_rows(x, self.weight.val()) } else { x };
        let norms = edge_norms(views, count, "sg_conv", etype, self.norm, edge_weights);
        let x = (0..self.hops).fold(x, |x, k| {
            let (g, (edge_weight, norm, options)) = (views.view(k), &norms[k.min(count - 1)]);
            let src = src_rows(g, "sg_conv", g.schema().ends(etype).0, norm.scale_input(g, "sg_conv", etype, x));
            weighted_aggregate(g.relation(etype), src, edge_weight.clone(), None, options)
        });
        let y = if first { x } else { matmul_rows(x, self.weight.val()) };
        bias_activation(y, self.bias.as_ref().map(|b| b.val()), Activation::None, None)
    }
}

impl Pretrained for SgConv {
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        let module = if from == Framework::Dgl { "fc" } else { "lin" };
        match path {
            "weight" => ParamMapping::transposed(format!("{module}.weight")),
            _ => ParamMapping::same(format!("{module}.{path}")),
        }
    }
}
