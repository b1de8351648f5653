//! Implements the graph convolution of Kipf and Welling (GCN).

use burn::config::Config;
use burn::module::{Module, Param, ParamId};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_ops::{
    AggregateOptions, DegreesOf, Edges, Endpoints, matmul_rows, weighted_aggregate,
};

use crate::layers::conv::{Conv, multiplies_first};
use crate::params::init;
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// How a graph convolution normalises messages by degree.
///
/// Degrees are those of the whole graph ([`GraphView::in_degrees`](burn_gnn_ops::GraphView::in_degrees)), and a degree
/// of 0 counts as 1.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum DegreeNorm {
    /// `l_u = r_v = 1`.
    None,
    /// `l_u = 1 / deg_out(u)`.
    Left,
    /// The mean of the messages that `v` receives: `r_v = 1 / deg_in(v)`. On a sampled block, `r_v` is 1 divided by the
    /// number of edges sampled for `v`, as in [`RelNorm::Right`](crate::RelNorm::Right).
    Right,
    /// `l_u = deg_out(u)^-1/2`, `r_v = deg_in(v)^-1/2`, as in DGL's `GraphConv`. If every edge has a reverse edge, these
    /// are the degrees of the paper. On directed graphs PyTorch Geometric uses [`BothIn`](Self::BothIn).
    Both,
    /// `l_u = deg_in(u)^-1/2`, `r_v = deg_in(v)^-1/2`, as `gcn_norm` of PyTorch Geometric. A node without in-edges has
    /// `l_u = 0`, as in PyG: it sends nothing (DGL's `SGConv` counts its degree as 1). With self loops there is no
    /// such node.
    ///
    /// Requires an edge type on one node type, and a view that knows the in-degrees of its input rows
    /// ([`Edges::input_in_degrees`]): a graph, a partition, or a block of a graph in local memory. Partitions inside
    /// [`HeteroGraphConv`](crate::HeteroGraphConv) are not supported, because it scales features after the exchange.
    /// The cost is one pass over the input rows.
    BothIn,
}

impl DegreeNorm {
    /// Multiplies input features of the source type by the factors of [`BothIn`](Self::BothIn), which only the owner of a
    /// node can compute. [`options`](Self::options) contains all other factors.
    #[track_caller]
    pub(crate) fn scale_input(self, edges: &Edges<'_>, call: &str, x: Tensor<2>) -> Tensor<2> {
        if self != Self::BothIn {
            return x;
        }
        let name = edges.edge_type();
        let Some(degrees) = edges.input_in_degrees() else {
            panic!(
                "{call}: `DegreeNorm::BothIn` needs the in-degrees of all input rows over edge type `{name}`, which this view does not \
                 have; use it on an edge type of one node type, on a graph, a partition or a block of a whole graph"
            )
        };
        let rows = x.dims()[0];
        assert!(
            rows == degrees.len(),
            "{call}: `DegreeNorm::BothIn`: expected {} rows (input rows of edge type `{name}`), got {rows}; a partition inside \
             `HeteroGraphConv` has more, give it another norm",
            degrees.len()
        );
        let factors: Vec<f64> =
            degrees.iter().map(|&d| if d == 0 { 0.0 } else { f64::from(d).powf(-0.5) }).collect();
        let factors = Tensor::<2>::from_data(
            TensorData::new(factors, [rows, 1]),
            (&x.device().without_autodiff(), x.dtype()),
        );
        x * factors
    }

    /// Factors of source and destination features for the aggregation operator.
    pub(crate) fn options(self, edges: &Edges<'_>) -> AggregateOptions {
        let of = |of, power| Some(edges.degree_scale(of, power));
        let (source, destination) = match self {
            Self::None => (None, None),
            Self::Left => (of(DegreesOf::Sources, -1.0), None),
            Self::Right => (None, of(DegreesOf::Messages, -1.0)),
            Self::Both => (of(DegreesOf::Sources, -0.5), of(DegreesOf::Destinations, -0.5)),
            // `scale_input` scales sources before the exchange.
            Self::BothIn => (None, of(DegreesOf::Destinations, -0.5)),
        };
        AggregateOptions { source, destination, ..Default::default() }
    }
}

/// Describes a [`GcnConv`].
#[derive(Config, Debug)]
pub struct GcnConvConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// Normalisation by degree.
    #[config(default = "DegreeNorm::Both")]
    pub norm: DegreeNorm,
    /// Whether the layer has a weight. Otherwise the caller passes one ([`GcnConv::with_weight`]), or none is used.
    #[config(default = true)]
    pub weight: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph convolution (GCN): sums neighbour features normalised by degree, then applies a linear map.
///
/// `y[v] = r_v · Σ_(u,v,e) l_u · w_e · x[u] W + b`, with `l` and `r` of [`DegreeNorm`] and `w` edge weights or 1.
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]` in the order of edge ids, output `[num_dst, d_output]`. The output of a
/// destination without in-edges is the bias.
///
/// `W` is a parameter of the layer. With `weight` false, it is the weight of [`with_weight`](Self::with_weight), or
/// there is none and `d_output` must equal `d_input`.
///
/// # Differences from the paper and from other libraries
/// The caller adds self loops (`Graph::add_self_loops`), which PyG's layer adds by default. Degrees count edges, also
/// with edge weights. To normalise by sums of weights as PyG does, use [`EdgeWeightNorm`](crate::EdgeWeightNorm) with
/// [`DegreeNorm::None`].
///
/// # Cost
/// Features are multiplied by `W` before the aggregation if that reduces the feature size, so that the halo exchange
/// and the sum process `min(d_input, d_output)` features.
///
/// # Paper
/// Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017.
///
/// ```
/// use burn::module::Param;
/// use burn::tensor::{Device, Tensor};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_models::{Conv, GcnConvConfig};
/// let device = Device::flex();
/// let g = Graph::homogeneous(2, vec![0, 1], vec![1, 0])?.add_self_loops("_E")?;
/// let mut conv = GcnConvConfig::new(1, 1).with_bias(false).init(&device);
/// conv.weight = Some(Param::from_tensor(Tensor::ones([1, 1], &device)));
/// let y = conv.forward(&g, Tensor::from_data([[1.0], [3.0]], &device));
/// y.into_data().assert_approx_eq::<f32>(&[[2.0], [2.0]].into(), Default::default()); // every degree is 2
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Module, Debug)]
pub struct GcnConv {
    /// `W: [d_input, d_output]`, with `weight`.
    pub weight: Option<Param<Tensor<2>>>,
    /// `b: [d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    norm: DegreeNorm,
}

impl GcnConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), bias 0.
    pub fn init(&self, device: &Device) -> GcnConv {
        let (i, o) = (self.d_input, self.d_output);
        let init = Init { initializer: &self.initializer, device };
        let weight = self.weight.then(|| init.matrix([i, o]));
        GcnConv {
            weight,
            bias: self.bias.then(|| init::zeros(self.d_output, device)),
            norm: self.norm,
        }
    }
}

impl GcnConv {
    /// Returns this layer with a weight `[d_input, d_output]` that the caller owns. Gradients flow to the weight.
    ///
    /// # Panics
    /// The layer has a weight (`weight` is not false).
    #[track_caller]
    #[must_use]
    pub fn with_weight(&self, weight: Tensor<2>) -> Self {
        assert!(
            self.weight.is_none(),
            "gcn_conv: this layer already has a weight; set `weight` to false in its config to pass one"
        );
        Self { weight: Some(Param::initialized(ParamId::new(), weight)), ..self.clone() }
    }
}

/// If the layer multiplies before the aggregation, one operator over the edges applies factors, bias and activation. If
/// it aggregates first, one operator over the product applies bias, activation and dropout.
impl Conv for GcnConv {
    const NAME: &'static str = "gcn_conv";
    const READS_WEIGHT: bool = true;
    const FUSES_EPILOGUE: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [self.weight.as_ref().map(|w| w.val().dims()[0]), None]
    }

    #[track_caller]
    fn project(&self, edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        let x = match self.weight.as_ref().map(|w| w.val()).filter(multiplies_first) {
            Some(w) => matmul_rows(x, w),
            None => x,
        };
        self.norm.scale_input(edges, Self::NAME, x)
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let bias = self.bias.as_ref().map(|b| b.val());
        let options = self.norm.options(edges);
        let Endpoints { src, dst, .. } = x;
        // Destination features are not read: free them before the aggregation allocates.
        drop(dst);
        match self.weight.as_ref().map(|w| w.val()).filter(|w| !multiplies_first(w)) {
            Some(weight) => {
                let h = weighted_aggregate(edges.relation(), src, edges.weight(), None, &options);
                edges.finish(matmul_rows(h, weight), bias)
            }
            None => {
                let options = AggregateOptions { activation: edges.activation(), ..options };
                let h = weighted_aggregate(edges.relation(), src, edges.weight(), bias, &options);
                edges.drop(h)
            }
        }
    }
}

impl Pretrained for GcnConv {
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        match (from, path) {
            (Framework::Pyg, "weight") => ParamMapping::transposed("lin.weight"),
            _ => ParamMapping::same(path),
        }
    }
}
