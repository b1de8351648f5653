//! Implements the graph isomorphism layer (GIN).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Edges, Endpoints, Reduce};

use crate::error::ModelError;
use crate::layers::conv::{Conv, reduce_sources};
use crate::layers::convolution::gin_update::{self, GinUpdate};
use crate::layers::dense::mlp::Mlp;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// Describes a [`GinConv`].
#[derive(Config, Debug)]
pub struct GinConvConfig {
    /// Feature sizes of the perceptron, input first. Empty: the identity.
    pub widths: Vec<usize>,
    /// How neighbours are aggregated.
    #[config(default = "Reduce::Sum")]
    pub aggregator: Reduce,
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

/// Graph isomorphism layer (GIN): adds the neighbours to a node and applies a perceptron, which distinguishes any two
/// graphs that the Weisfeiler-Lehman test distinguishes.
///
/// `y[v] = MLP((1 + ε) · x[v] + AGG(w_e · x[u] : e = (u, v)))`, `w_e` the edge weights or 1.
///
/// # Shapes
/// Source and destination features `[num_input, d]` with the same `d`, `w: [num_edges]`, output `[num_dst, d_output]`
/// where `d_output` is the last of `widths`. A mean divides by the number of messages, not by the sum of their weights.
/// The output of a node without in-edges is `MLP((1 + ε) x[v])`.
///
/// # Differences from the paper
/// The perceptron has no batch normalisation, because its statistics would depend on the partition of a graph.
/// [`Gin`](crate::Gin) can normalise between layers.
///
/// # Paper
/// Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, GinConvConfig};
/// let (device, g) = (Device::flex(), Graph::homogeneous(3, vec![0, 2], vec![1, 1])?);
/// let conv = GinConvConfig::new(vec![4, 8, 2]).init(&device); // an MLP of 4, 8 and 2 features
/// assert_eq!(conv.forward(&g, Tensor::ones([3, 4], &device)).dims(), [3, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct GinConv {
    /// `None`: the identity.
    pub nn: Option<Mlp>,
    /// ε, `[1]`, if it is learned.
    pub eps: Option<Param<Tensor<1>>>,
    #[module(skip)]
    init_eps: f64,
    #[module(skip)]
    aggregator: Reduce,
}

impl GinConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// `widths` has one entry, or `init_eps` is not finite.
    pub fn try_init(&self, device: &Device) -> Result<GinConv, ModelError> {
        let init = Init { initializer: &self.initializer, device };
        let (nn, eps) = gin_update::init(&self.widths, (self.init_eps, self.learn_eps), init)?;
        Ok(GinConv { nn, eps, init_eps: self.init_eps, aggregator: self.aggregator })
    }
}

panicking_init!(GinConvConfig => GinConv);

impl GinConv {
    fn as_update(&self) -> GinUpdate<'_> {
        GinUpdate { nn: self.nn.as_ref(), eps: self.eps.as_ref(), init_eps: self.init_eps }
    }
}

impl Conv for GinConv {
    const NAME: &'static str = "gin_conv";
    const READS_WEIGHT: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        self.as_update().input_sizes()
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        self.as_update().forward(x.dst, reduce_sources(edges, self.aggregator, x.src))
    }
}

impl Pretrained for GinConv {
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        self.as_update().param_mapping(from, path)
    }
    fn buffers(&self, _from: Framework) -> Vec<Buffer> {
        self.as_update().buffers()
    }
}
