//! Implements the graph isomorphism layer with edge features (GINE).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{Device, Tensor, activation};
use burn_gnn_ops::{Edges, Endpoints, copy_e_sum, u_add_e};

use crate::error::ModelError;
use crate::layers::conv::Conv;
use crate::layers::convolution::gin_update::{self, GinUpdate};
use crate::layers::dense::mlp::{Mlp, apply_some};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`GineConv`].
#[derive(Config, Debug)]
pub struct GineConvConfig {
    /// Node feature size.
    pub d_input: usize,
    /// Feature sizes of the perceptron, `d_input` first. Empty: the identity.
    pub widths: Vec<usize>,
    /// Feature size of edges, which are projected to `d_input`. `None`: `d_input`, without a projection.
    pub d_edge: Option<usize>,
    /// Initial value of ε.
    #[config(default = 0.0)]
    pub init_eps: f64,
    /// Whether ε is learned.
    #[config(default = false)]
    pub learn_eps: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph isomorphism layer with edge features (GINE): [`GinConv`](crate::GinConv) whose messages add the features of
/// the edge, for example bond types of a molecule.
///
/// `y[v] = MLP((1 + ε) · x[v] + Σ_(u,v,e) relu(x[u] + f[e]))`; with `d_edge`, `f` is projected by `f W_e + b_e` first.
///
/// # Shapes
/// Source and destination features `[num_input, d_input]`, `f: [num_edges, d_edge]` in the order of edge ids, output
/// `[num_dst, d_output]` where `d_output` is the last of `widths`.
///
/// # Differences from the paper
/// The perceptron has no batch normalisation.
///
/// # Paper
/// Hu, Liu, Gomes, Zitnik, Liang, Pande, Leskovec, "Strategies for pre-training graph neural networks", ICLR 2020.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, GineConvConfig};
/// use burn_gnn_ops::GraphView;
/// let (device, g) = (Device::flex(), Graph::homogeneous(3, vec![0, 2], vec![1, 1])?);
/// let edges = g.edge_type("_E")?.with_features(Tensor::ones([2, 4], &device)); // one row per edge
/// let y = GineConvConfig::new(4, vec![4, 2]).init(&device).forward(edges, Tensor::ones([3, 4], &device));
/// assert_eq!(y.dims(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct GineConv {
    /// `None`: the identity.
    pub nn: Option<Mlp>,
    /// ε, `[1]`, if it is learned.
    pub eps: Option<Param<Tensor<1>>>,
    /// `W_e: [d_edge, d_input]` and `b_e`, with `d_edge`.
    pub lin: Option<Linear>,
    #[module(skip)]
    init_eps: f64,
}

impl GineConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `widths` has one entry or does not start with `d_input`, or `init_eps` is not finite.
    pub fn try_init(&self, device: &Device) -> Result<GineConv, ModelError> {
        if let Some(&first) = self.widths.first() {
            let why = "the perceptron reads sums of node features";
            ModelError::check_length("widths[0]", why, self.d_input, first)?;
        }
        let init = Init { initializer: &self.initializer, device };
        let (nn, eps) = gin_update::init(&self.widths, (self.init_eps, self.learn_eps), init)?;
        let lin = self.d_edge.map(|d| init.linear([d, self.d_input], true));
        Ok(GineConv { nn, eps, lin, init_eps: self.init_eps })
    }
}

panicking_init!(GineConvConfig => GineConv);

impl GineConv {
    fn as_update(&self) -> GinUpdate<'_> {
        GinUpdate { nn: self.nn.as_ref(), eps: self.eps.as_ref(), init_eps: self.init_eps }
    }
}

impl Conv for GineConv {
    const NAME: &'static str = "gine_conv";
    const READS_FEATURES: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        self.as_update().input_sizes()
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let Some(features) = edges.features() else {
            panic!("gine_conv: edge features are required; set them with `Edges::with_features`")
        };
        let features = apply_some(self.lin.as_ref(), features);
        let messages: Tensor<2> = u_add_e(edges.relation(), x.src, features);
        let sum = copy_e_sum(edges.relation(), activation::relu(messages));
        self.as_update().forward(x.dst, sum)
    }
}

impl Pretrained for GineConv {
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        self.as_update().param_mapping(from, path)
    }
    fn buffers(&self, _from: Framework) -> Vec<Buffer> {
        self.as_update().buffers()
    }
}
