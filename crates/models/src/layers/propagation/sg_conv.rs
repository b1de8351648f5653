//! Implements simplified graph convolution (SGC).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{ConvInput, Edges, Endpoints, matmul_rows, weighted_aggregate};

use crate::layers::conv::{Conv, check_computed, check_options, check_size, hop_input};
use crate::layers::convolution::gcn_conv::DegreeNorm;
use crate::layers::dense::mlp::add_bias;
use crate::layers::propagation::edge_weight_norm::{Hop, hops_of, only_hop};
use crate::params::init;
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes an [`SgConv`].
#[derive(Config, Debug)]
pub struct SgConvConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// Number of hops (`K` of PyTorch Geometric, `k` of DGL).
    #[doc(alias = "K")]
    #[config(default = 1)]
    pub hops: usize,
    /// Normalisation by degree. DGL's `SGConv` uses [`DegreeNorm::BothIn`], and `Both` with edge weights; PyTorch
    /// Geometric uses `BothIn`.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether degrees are sums of edge weights ([`EdgeWeightNorm`](crate::EdgeWeightNorm)), as in DGL and PyTorch
    /// Geometric. Otherwise edge weights multiply messages and degrees count edges.
    #[config(default = false)]
    pub weighted_norm: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Simplified graph convolution (SGC): one linear map after several hops of normalised sums, a GCN without activations
/// between its layers.
///
/// `y = Âᵏ x W + b` with `Â[u, v] = w_e / sqrt(deg_out(u) deg_in(v))`. Degrees are those of the whole graph. `norm`
/// selects another normalisation ([`DegreeNorm`]). With `weighted_norm`, degrees are sums of edge weights if there are
/// edge weights.
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]`, output `[num_dst, d_output]`. More than one hop needs a view that
/// computes all its input rows (a whole graph or a partition), or a block per hop ([`forward_hops`](Self::forward_hops)).
///
/// # Differences from the paper and from other libraries
/// The caller adds self loops (`Graph::add_self_loops`), which PyG's layer adds by default. There is no cache of `Âᵏ x`
/// (`cached` in both libraries).
///
/// # Cost
/// One pass over the edges and one halo exchange per hop, with `min(d_input, d_output)` features. `Âᵏ x` does not change
/// during training; for long training compute it once, and train a layer with 0 hops, which is a linear map.
/// `weighted_norm` normalises weights in every call.
///
/// # Paper
/// Wu, Zhang, de Souza, Fifty, Yu, Weinberger, "Simplifying graph convolutional networks", ICML 2019.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, SgConvConfig};
/// let (device, g) = (Device::flex(), Graph::homogeneous(3, vec![0, 2], vec![1, 1])?.add_self_loops("_E")?);
/// let y = SgConvConfig::new(4, 2).with_hops(2).init(&device).forward(&g, Tensor::ones([3, 4], &device));
/// assert_eq!(y.dims(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct SgConv {
    /// `W: [d_input, d_output]`.
    pub weight: Param<Tensor<2>>,
    /// `b: [d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    hops: usize,
    #[module(skip)]
    norm: (DegreeNorm, bool),
}

impl SgConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), bias 0.
    pub fn init(&self, device: &Device) -> SgConv {
        let init = Init { initializer: &self.initializer, device };
        let weight = init.matrix([self.d_input, self.d_output]);
        let bias = self.bias.then(|| init::zeros(self.d_output, device));
        SgConv { weight, bias, hops: self.hops, norm: (self.norm, self.weighted_norm) }
    }
}

impl SgConv {
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
        let steps = hops_of(Self::NAME, self.hops, hops, self.norm);
        let x = match (x.into(), hops) {
            (x, [first, rest @ ..]) if self.hops > 1 => {
                let x = hop_input(Self::NAME, first, x);
                if rest.is_empty() {
                    check_computed(Self::NAME, first.num_dst(), &x);
                }
                x
            }
            (ConvInput::Same(x) | ConvInput::Pair(x, _), _) => x,
        };
        let [d_input, d_output] = self.weight.val().dims();
        if let Some(edges) = hops.first() {
            check_size(Self::NAME, edges, "source", Some(d_input), &x);
        }
        let first = d_input > d_output;
        let x = if first { matmul_rows(x, self.weight.val()) } else { x };
        let x = steps.iter().fold(x, |x, Hop { edges, weight, norm, options }| {
            let src = edges.src_rows(Self::NAME, norm.scale_input(edges, Self::NAME, x));
            weighted_aggregate(edges.relation(), src, weight.clone(), None, options)
        });
        let y = if first { x } else { matmul_rows(x, self.weight.val()) };
        let bias = self.bias.as_ref().map(|b| b.val());
        match hops.last() {
            Some(last) => last.finish(y, bias),
            None => add_bias(y, bias),
        }
    }
}

/// Every hop needs a halo exchange, so [`aggregate`](Conv::aggregate), which has one, supports a single hop.
impl Conv for SgConv {
    const NAME: &'static str = "sg_conv";
    const READS_WEIGHT: bool = true;
    const FUSES_EPILOGUE: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.weight.val().dims()[0]), None]
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let Hop { weight, norm, options, .. } = only_hop(Self::NAME, self.hops, edges, self.norm);
        let Endpoints { src, dst, .. } = x;
        // Destination features are not read: free them before the aggregation allocates.
        drop(dst);
        let src = norm.scale_input(edges, Self::NAME, src);
        let y = weighted_aggregate(edges.relation(), src, weight, None, &options);
        edges.finish(matmul_rows(y, self.weight.val()), self.bias.as_ref().map(|b| b.val()))
    }

    #[track_caller]
    fn forward<'a>(&self, edges: impl Into<Edges<'a>>, x: impl Into<ConvInput>) -> Tensor<2> {
        self.forward_hops(&[edges.into()], x)
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
