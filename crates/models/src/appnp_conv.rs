//! Personalised propagation of predictions.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{EdgeDropout, GraphView, dropout, weighted_aggregate};
use burn_gnn_sampling::Block;

use crate::conv::{check_computed, check_one_type, check_weights, src_rows};
use crate::edge_weight_norm::edge_norms;
use crate::{DegreeNorm, DropoutKey, LayerViews, Mode, ModelError, Whole};

/// Describes an [`AppnpConv`].
#[derive(Config, Debug)]
pub struct AppnpConvConfig {
    /// Number of hops.
    #[config(default = 10)]
    pub hops: usize,
    /// Probability to go back to the start, the weight of the input in every hop.
    #[config(default = 0.1)]
    pub alpha: f64,
    /// Probability that an edge is left out of a hop.
    #[config(default = 0.0)]
    pub edge_dropout: f64,
    /// What messages are normalised by. DGL's `APPNPConv` has `Both`, PyTorch Geometric [`DegreeNorm::BothIn`].
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether the degrees of `norm` are sums of edge weights ([`EdgeWeightNorm`](crate::EdgeWeightNorm)), as in DGL and PyTorch
    /// Geometric; otherwise edge weights multiply messages and degrees count edges.
    #[config(default = false)]
    pub weighted_norm: bool,
}

/// Propagation by personalised PageRank, without parameters:
///
/// ```text
/// z⁰ = x,    zᵏ⁺¹[v] = (1 - α) · Σ_(u,v,e) w_e · zᵏ[u] / sqrt(deg_out(u) deg_in(v)) + α · x[v],    y = z^hops
/// ```
/// Degrees are those of the whole graph. `norm` takes others ([`DegreeNorm`]), `weighted_norm` sums of edge weights in their place,
/// where weights are given.
///
/// # Shapes
/// `x: [num_input, d]` (predictions of a perceptron), `w: [num_edges]`, output `[num_dst, d]`. With more than one hop all input rows
/// must be computed rows, on a whole graph or a partition, or every hop has a block ([`forward_blocks`](Self::forward_blocks)). A node
/// without in-edges gets `α x[v]`.
///
/// # Departures from the paper
/// None; the caller must add self loops, as the paper does (`Graph::add_self_loops`). Edges are dropped as in DGL, in
/// every hop anew.
///
/// # Cost
/// One pass over the edges and one exchange per hop. `weighted_norm` normalises weights in every call.
///
/// # Paper
/// Klicpera, Bojchevski, Günnemann, "Predict then propagate", ICLR 2019.
#[derive(Module, Debug)]
pub struct AppnpConv {
    #[module(skip)]
    key: DropoutKey,
    #[module(skip)]
    config: AppnpConvConfig,
}

impl AppnpConvConfig {
    /// A layer; without parameters, yet with a key of its own for dropout, which the device's generator draws outside of
    /// [`seeded`](crate::seeded).
    ///
    /// # Errors
    /// `alpha` outside `0.0..=1.0`, dropout outside `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<AppnpConv, ModelError> {
        ModelError::check_sizes(&[], self.edge_dropout)?;
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(ModelError::OutOfRange { arg: "alpha".into(), range: "0.0..=1.0".into(), value: self.alpha.to_string() });
        }
        Ok(AppnpConv { key: DropoutKey::new(device), config: self.clone() })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> AppnpConv {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl AppnpConv {
    /// On edge type 0 of a graph of one type.
    ///
    /// # Panics
    /// Shapes that disagree with the graph.
    #[track_caller]
    pub fn forward<G: GraphView + ?Sized>(&self, g: &G, x: Tensor<2>, mode: Mode) -> Tensor<2> {
        self.forward_on(g, 0, x, None, mode)
    }

    /// On one edge type that joins nodes of one type, with one weight per edge or none.
    ///
    /// # Panics
    /// Shapes that disagree with the graph, an edge type between two node types, a block under several hops, what `norm` refuses.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(
        &self,
        g: &G,
        etype: usize,
        x: Tensor<2>,
        edge_weight: Option<Tensor<1>>,
        mode: Mode,
    ) -> Tensor<2> {
        self.over(&Whole(g), etype, x, edge_weight.as_ref().map(std::slice::from_ref), mode)
    }

    /// Rows of the seeds of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), hop `i` on block `i`: `x` are the rows of its input nodes,
    /// `edge_weights` one weight per edge of each block, or none. With all neighbours of as many hops these are the rows of the graph.
    ///
    /// # Panics
    /// Not one block (and tensor of weights) per hop; as [`forward_on`](Self::forward_on).
    #[track_caller]
    pub fn forward_blocks(
        &self,
        blocks: &[Block],
        etype: usize,
        x: Tensor<2>,
        edge_weights: Option<&[Tensor<1>]>,
        mode: Mode,
    ) -> Tensor<2> {
        self.over(blocks, etype, x, edge_weights, mode)
    }

    /// Hop `i` on view `i`.
    #[track_caller]
    fn over<V: LayerViews + ?Sized>(
        &self,
        views: &V,
        etype: usize,
        x: Tensor<2>,
        edge_weights: Option<&[Tensor<1>]>,
        mode: Mode,
    ) -> Tensor<2> {
        let AppnpConvConfig { hops, alpha, edge_dropout, norm, weighted_norm } = self.config;
        let count = views.count("appnp_conv", hops);
        check_weights("appnp_conv", count, edge_weights);
        if hops == 0 {
            return x;
        }
        let ntype = views.view(0).schema().ends(etype).0;
        check_one_type(views.view(0), "appnp_conv", etype);
        if count < hops {
            check_computed(views.view(0), "appnp_conv", ntype, &x);
        }
        let norms = edge_norms(views, count, "appnp_conv", etype, (norm, weighted_norm), edge_weights);
        (0..hops).fold(x.clone(), |z, k| {
            let (g, (edge_weight, norm, options)) = (views.view(k), &norms[k.min(count - 1)]);
            let relation = g.relation(etype);
            let weight = match mode.edge_dropout(g, etype, self.key.at(k), edge_dropout) {
                Some(EdgeDropout { prob, stream, ids }) => {
                    let all = edge_weight.clone().unwrap_or_else(|| Tensor::ones([relation.num_edges()], (&x.device(), x.dtype())));
                    Some(dropout(all.unsqueeze_dim(1), prob, stream, ids).squeeze_dim(1))
                }
                None => edge_weight.clone(),
            };
            let src = src_rows(g, "appnp_conv", ntype, norm.scale_input(g, "appnp_conv", etype, z));
            let h = weighted_aggregate(relation, src, weight, None, options);
            h * (1.0 - alpha) + g.dst_rows(ntype, x.clone()) * alpha
        })
    }
}
