//! Implements APPNP: personalised propagation of neural predictions.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{ConvInput, DropoutKey, EdgeDropout, Edges, dropout, weighted_aggregate};

use crate::error::ModelError;
use crate::layers::conv::{Conv, Endpoints, check_computed, check_options, hop_input};
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
    /// Probability to go back to the start, the weight of the input in every hop.
    #[config(default = 0.1)]
    pub alpha: f64,
    /// Probability that an edge is left out of a hop.
    #[config(default = 0.0)]
    pub dropout: f64,
    /// What messages are normalised by. DGL's `APPNPConv` has `Both`, PyTorch Geometric [`DegreeNorm::BothIn`].
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether the degrees of `norm` are sums of edge weights ([`EdgeWeightNorm`](crate::EdgeWeightNorm)), as in DGL
    /// and PyTorch Geometric; otherwise edge weights multiply messages and degrees count edges.
    #[config(default = false)]
    pub weighted_norm: bool,
}

/// Propagation by personalised PageRank, without parameters:
///
/// ```text
/// z⁰ = x,    zᵏ⁺¹[v] = (1 - α) · Σ_(u,v,e) w_e · zᵏ[u] / sqrt(deg_out(u) deg_in(v)) + α · x[v],    y = z^hops
/// ```
/// Degrees are those of the whole graph. `norm` takes others ([`DegreeNorm`]), `weighted_norm` sums of edge weights in
/// their place, where weights are given.
///
/// # Shapes
/// `x: [num_input, d]` (predictions of a perceptron), `w: [num_edges]`, output `[num_dst, d]`. With more than one hop
/// all input rows must be computed rows, on a whole graph or a partition, or every hop has a block
/// ([`forward_hops`](Self::forward_hops)). A node without in-edges gets `α x[v]`.
///
/// # Departures from the paper
/// None; the caller must add self loops, as the paper does (`Graph::add_self_loops`). Edges are dropped as in DGL, in
/// every hop again.
///
/// # Cost
/// One pass over the edges and one exchange per hop. `weighted_norm` normalises weights in every call.
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
    /// A layer; without parameters, yet with a key of its own for dropout, which the device's generator draws outside
    /// of [`seeded`](crate::seeded).
    ///
    /// # Errors
    /// `alpha` outside `0.0..=1.0`, dropout outside `0.0..1.0`.
    pub fn try_init(&self, device: &Device) -> Result<AppnpConv, ModelError> {
        ModelError::check_sizes(&[], self.dropout)?;
        let in_range = (0.0..=1.0).contains(&self.alpha);
        ModelError::check_range("alpha", "0.0..=1.0", self.alpha, in_range)?;
        Ok(AppnpConv { key: DropoutKey::new(device), config: self.clone() })
    }
}

panicking_init!(AppnpConvConfig => AppnpConv);

impl AppnpConv {
    /// [`forward`](Conv::forward) with the edges of every hop: hop `i` runs on `hops[i]`, as on the blocks of a
    /// [`MiniBatch`](burn_gnn_sampling::MiniBatch), whose input nodes have the features `x`. With all neighbours of as
    /// many hops the result is that of the graph. One entry serves all hops. What follows the layer is asked of the
    /// last entry.
    ///
    /// # Panics
    /// Neither one entry nor one per hop; as [`forward`](Conv::forward).
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

    /// Hop `k`, from scaled sources and the input of the destinations.
    fn hop(&self, k: usize, hop: &Hop<'_, '_>, src: Tensor<2>, own: Tensor<2>) -> Tensor<2> {
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
        weighted_aggregate(relation, src, weight, None, &hop.options) * (1.0 - alpha) + own * alpha
    }
}

/// Several hops are several exchanges, so [`aggregate`](Conv::aggregate) serves one hop alone.
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
