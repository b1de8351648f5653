//! Implements APPNP: personalised propagation of neural predictions.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{
    ConvInput, DropoutKey, EdgeDropout, Edges, Endpoints, dropout, weighted_aggregate,
};

use crate::error::ModelError;
use crate::layers::conv::{Conv, check_computed, check_options, hop_input};
use crate::layers::convolution::gcn_conv::DegreeNorm;
use crate::layers::propagation::edge_weight_norm::{Hop, hops_of, only_hop};
use crate::params::init::panicking_init;

/// Describes an [`AppnpConv`].
#[derive(Config, Debug)]
pub struct AppnpConvConfig {
    /// Number of hops (`K` of PyTorch Geometric, `k` of DGL).
    #[doc(alias = "K")]
    #[config(default = 10)]
    pub hops: usize,
    /// Teleport probability: the weight of the input in every hop.
    #[config(default = 0.1)]
    pub alpha: f64,
    /// Dropout probability of edges, drawn again in every hop.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// Normalisation by degree. DGL's `APPNPConv` uses `Both`, PyTorch Geometric [`DegreeNorm::BothIn`].
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether degrees are sums of edge weights ([`EdgeWeightNorm`](crate::EdgeWeightNorm)), as in DGL and PyTorch
    /// Geometric. Otherwise edge weights multiply messages and degrees count edges.
    #[config(default = false)]
    pub weighted_norm: bool,
}

/// APPNP: propagates predictions over several hops by personalised PageRank. It has no parameters; a perceptron before
/// it does the learning.
///
/// ```text
/// z⁰ = x,    zᵏ⁺¹[v] = (1 - α) · Σ_(u,v,e) w_e · zᵏ[u] / sqrt(deg_out(u) deg_in(v)) + α · x[v],    y = z^hops
/// ```
/// Degrees are those of the whole graph. `norm` selects another normalisation ([`DegreeNorm`]). With `weighted_norm`,
/// degrees are sums of edge weights if there are edge weights.
///
/// # Shapes
/// `x: [num_input, d]` (predictions of a perceptron), `w: [num_edges]`, output `[num_dst, d]`. More than one hop needs a
/// view that computes all its input rows (a whole graph or a partition), or a block per hop
/// ([`forward_hops`](Self::forward_hops)). The output of a node without in-edges is `α x[v]`.
///
/// # Differences from the paper and from other libraries
/// The caller adds self loops (`Graph::add_self_loops`), which PyG's layer adds by default. Dropout of edges is drawn
/// again in every hop, as in DGL.
///
/// # Cost
/// One pass over the edges and one halo exchange per hop. `weighted_norm` normalises weights in every call.
///
/// # Paper
/// Klicpera, Bojchevski, Günnemann, "Predict then propagate", ICLR 2019.
#[derive(Module, Debug)]
pub struct AppnpConv {
    key: DropoutKey,
    #[module(skip)]
    config: AppnpConvConfig,
}

impl AppnpConvConfig {
    /// Initializes a layer. It has no parameters, but a key for dropout, which the generator of the device draws unless
    /// the call is in a [`seeded`](crate::seeded) scope.
    ///
    /// # Errors
    /// `alpha` is not in `0.0..=1.0`, or `dropout` is not in `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<AppnpConv, ModelError> {
        ModelError::check_sizes(&[], self.dropout)?;
        let in_range = (0.0..=1.0).contains(&self.alpha);
        ModelError::check_range("alpha", "0.0..=1.0", self.alpha, in_range)?;
        Ok(AppnpConv { key: DropoutKey::new(device), config: self.clone() })
    }
}

panicking_init!(AppnpConvConfig => AppnpConv);

impl AppnpConv {
    /// Computes [`forward`](Conv::forward) on separate edges for every hop: hop `i` runs on `hops[i]`, for example on the
    /// blocks of a [`MiniBatch`](burn_gnn_sampling::MiniBatch), where `x` are the features of its input nodes. If the
    /// blocks contain all neighbours, the result equals that of the whole graph. A single entry is used for all hops.
    /// Activation and dropout of the last entry are applied to the result.
    ///
    /// # Panics
    /// `hops` has neither one entry nor one per hop; as [`forward`](Conv::forward).
    #[track_caller]
    pub fn forward_hops(&self, hops: &[Edges<'_>], x: impl Into<ConvInput>) -> Tensor<2> {
        hops.iter().for_each(check_options::<Self>);
        let AppnpConvConfig { hops: count, norm, weighted_norm, .. } = self.config;
        let steps = hops_of(Self::NAME, count, hops, (norm, weighted_norm));
        let [first, rest @ ..] = hops else {
            return match x.into() {
                ConvInput::Same(x) | ConvInput::Pair(x, _) => x,
            };
        };
        let x = hop_input(Self::NAME, first, x.into());
        if count > 1 && rest.is_empty() {
            check_computed(Self::NAME, first.num_dst(), &x);
        }
        let z = steps.iter().enumerate().fold(x.clone(), |z, (k, hop)| {
            let src =
                hop.edges.src_rows(Self::NAME, hop.norm.scale_input(hop.edges, Self::NAME, z));
            self.hop(k, hop, src, hop.edges.dst_rows(x.clone()))
        });
        rest.last().unwrap_or(first).finish(z, None)
    }

    /// Computes hop `k` from scaled sources and the input features `x` of destinations.
    fn hop(&self, k: usize, hop: &Hop<'_, '_>, src: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        let (relation, alpha) = (hop.edges.relation(), self.config.alpha);
        let weight = match self.key.at(k).of_edges(hop.edges, self.config.dropout, &src) {
            Some(EdgeDropout { prob, stream, ids }) => {
                let all = hop.weight.clone().unwrap_or_else(|| {
                    Tensor::ones([relation.num_edges()], (&src.device(), src.dtype()))
                });
                Some(dropout(all.unsqueeze_dim(1), prob, stream, ids).squeeze_dim(1))
            }
            None => hop.weight.clone(),
        };
        weighted_aggregate(relation, src, weight, None, &hop.options) * (1.0 - alpha) + x * alpha
    }
}

/// Every hop needs a halo exchange, so [`aggregate`](Conv::aggregate), which has one, supports a single hop.
impl Conv for AppnpConv {
    const NAME: &'static str = "appnp_conv";
    const READS_WEIGHT: bool = true;
    const FUSES_EPILOGUE: bool = true;

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let AppnpConvConfig { hops, norm, weighted_norm, .. } = self.config;
        let hop = only_hop(Self::NAME, hops, edges, (norm, weighted_norm));
        let src = hop.norm.scale_input(edges, Self::NAME, x.src);
        edges.finish(self.hop(0, &hop, src, x.dst), None)
    }

    #[track_caller]
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: impl Into<ConvInput>) -> Tensor<2> {
        self.forward_hops(&[edges.into()], x)
    }
}
