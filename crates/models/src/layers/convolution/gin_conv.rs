//! Implements the graph isomorphism layer (GIN).

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor};
use burn_gnn_ops::{Edges, Reduce};

use crate::error::ModelError;
use crate::layers::conv::{Conv, Endpoints, reduce_sources};
use crate::layers::dense::mlp::Mlp;
use crate::params::init::{Init, panicking_init};
use crate::pretrained::{Buffer, Framework, ParamMapping, Pretrained, indexed};

/// Describes a [`GinConv`].
#[derive(Config, Debug)]
pub struct GinConvConfig {
    /// Feature sizes of the perceptron, input first; empty for the identity.
    pub widths: Vec<usize>,
    /// How neighbours are aggregated.
    #[config(default = "Reduce::Sum")]
    pub aggregator: Reduce,
    /// First value of ε.
    #[config(default = 0.0)]
    pub init_eps: f64,
    /// Whether ε is learned.
    #[config(default = false)]
    pub learn_eps: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph isomorphism convolution, `y[v] = MLP((1 + ε) · x[v] + AGG(w_e · x[u] : e = (u, v)))`, `w_e` 1 without edge
/// weights.
///
/// # Shapes
/// Source and destination features `[num_input, d]` with the same `d`, `w: [num_edges]`, output `[num_dst, d_output]`
/// with `d_output` the last feature size. A mean divides by the number of messages, whatever their weights. A node
/// without in-edges gets `MLP((1 + ε) x[v])`.
///
/// # Departures from the paper
/// No batch normalisation inside the perceptron: its statistics would depend on how a graph is cut.
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
    /// None for the identity.
    pub nn: Option<Mlp>,
    /// ε, `[1]`, if it is learned.
    pub eps: Option<Param<Tensor<1>>>,
    #[module(skip)]
    init_eps: f64,
    #[module(skip)]
    aggregator: Reduce,
}

/// The perceptron and ε of GIN layers.
pub(crate) fn parts(
    widths: &[usize],
    (init_eps, learn_eps): (f64, bool),
    init: Init<'_>,
) -> Result<(Option<Mlp>, Option<Param<Tensor<1>>>), ModelError> {
    ModelError::check_finite("init_eps", init_eps)?;
    let nn = (!widths.is_empty()).then(|| Mlp::new(widths, true, init)).transpose()?;
    Ok((nn, learn_eps.then(|| Param::from_tensor(Tensor::full([1], init_eps, init.device)))))
}

/// Feature size that the perceptron reads; none without one.
pub(crate) fn input_size(nn: Option<&Mlp>) -> Option<usize> {
    nn.and_then(|nn| nn.layers.first()).map(|layer| layer.weight.val().dims()[0])
}

/// `MLP((1 + ε) own + sum)`.
pub(crate) fn combine(
    nn: Option<&Mlp>,
    eps: Option<&Param<Tensor<1>>>,
    init_eps: f64,
    own: Tensor<2>,
    sum: Tensor<2>,
) -> Tensor<2> {
    let own = match eps {
        Some(eps) => own * (eps.val() + 1.0).unsqueeze(),
        None => own * (1.0 + init_eps),
    };
    match nn {
        Some(nn) => nn.forward(own + sum),
        None => own + sum,
    }
}

/// Where the perceptron and ε of GIN layers are kept: a single map, a `Sequential` with ReLU between, or the list of an
/// `MLP`.
pub(crate) fn param_mapping(nn: Option<&Mlp>, from: Framework, path: &str) -> ParamMapping {
    let (module, list) =
        if from == Framework::Dgl { ("apply_func", "linears") } else { ("nn", "lins") };
    match path.strip_prefix("nn.").and_then(indexed) {
        Some(("layers", i, field)) => match nn.map(|nn| nn.layers.len()) {
            Some(1) => ParamMapping::same(format!("{module}.{field}")),
            _ => ParamMapping::same(format!("{module}.{}.{field}", 2 * i)),
        }
        .or(format!("{module}.{list}.{i}.{field}")),
        _ => ParamMapping::same(path),
    }
}

/// An ε that is not learned is a buffer in both frameworks.
pub(crate) fn buffers(eps: Option<&Param<Tensor<1>>>, init_eps: f64) -> Vec<Buffer> {
    if eps.is_some() { vec![] } else { vec![Buffer::option("eps", init_eps, "init_eps")] }
}

impl GinConvConfig {
    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, biases 0.
    ///
    /// # Errors
    /// One feature size only, or an ε that is not finite.
    pub fn try_init(&self, device: &Device) -> Result<GinConv, ModelError> {
        let init = Init { initializer: &self.initializer, device };
        let (nn, eps) = parts(&self.widths, (self.init_eps, self.learn_eps), init)?;
        Ok(GinConv { nn, eps, init_eps: self.init_eps, aggregator: self.aggregator })
    }
}

panicking_init!(GinConvConfig => GinConv);

impl Conv for GinConv {
    const NAME: &'static str = "gin_conv";
    const READS_WEIGHT: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [input_size(self.nn.as_ref()); 2]
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let sum = reduce_sources(edges, self.aggregator, x.src);
        combine(self.nn.as_ref(), self.eps.as_ref(), self.init_eps, x.dst, sum)
    }
}

impl Pretrained for GinConv {
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        param_mapping(self.nn.as_ref(), from, path)
    }
    fn buffers(&self, _from: Framework) -> Vec<Buffer> {
        buffers(self.eps.as_ref(), self.init_eps)
    }
}
