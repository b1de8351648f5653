//! Implements the graph convolution of Kipf and Welling (GCN).

use burn::config::Config;
use burn::module::{Module, Param, ParamId};
use burn::nn::Initializer;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_ops::{AggregateOptions, DegreesOf, Edges, matmul_rows, weighted_aggregate};

use crate::layers::conv::{Conv, Endpoints, multiplies_first};
use crate::params::init;
use crate::params::init::Init;
use crate::pretrained::{Framework, ParamMapping, Pretrained};

/// How messages are normalised by degree; a degree of 0 counts as 1. Degrees are those of the whole graph
/// ([`GraphView::in_degrees`](burn_gnn_ops::GraphView::in_degrees)).
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum DegreeNorm {
    /// `l_u = r_v = 1`.
    None,
    /// `l_u = 1 / deg_out(u)`.
    Left,
    /// The mean of the messages that `v` receives: `r_v = 1 / deg_in(v)`, and on a sampled block 1 by the number of
    /// edges sampled for `v`, as in [`RelNorm::Right`](crate::RelNorm::Right).
    Right,
    /// `l_u = deg_out(u)^-1/2`, `r_v = deg_in(v)^-1/2`, as in DGL's `GraphConv`. Where edges run both ways these are
    /// the degrees of the paper; on directed graphs PyTorch Geometric takes [`BothIn`](Self::BothIn).
    Both,
    /// `l_u = deg_in(u)^-1/2`, `r_v = deg_in(v)^-1/2`, as `gcn_norm` of PyTorch Geometric. A node without in-edges has
    /// `l_u = 0` there and here: it sends nothing (DGL's `SGConv` counts its degree as 1). With self loops there is no
    /// such node.
    ///
    /// For edge types on one node type. The view must know the in-degrees of its input rows
    /// ([`Edges::input_in_degrees`]): a graph, a partition, a block of a graph that this machine holds. Inside
    /// [`HeteroGraphConv`](crate::HeteroGraphConv) no partition, because features are scaled after the exchange
    /// there. It costs one pass over the input rows.
    BothIn,
}

impl DegreeNorm {
    /// Input rows of the source type, times the factors that [`options`](Self::options) leaves to their owners.
    #[track_caller]
    pub(crate) fn scale_input(self, edges: &Edges<'_>, call: &str, x: Tensor<2>) -> Tensor<2> {
        if self != Self::BothIn {
            return x;
        }
        let name = edges.edge_type();
        let Some(degrees) = edges.input_in_degrees() else {
            panic!(
                "{call}: `DegreeNorm::BothIn` needs the in-degrees of all input rows over edge type `{name}`, which this view does not \
                 know; use it on an edge type of one node type, on a graph, a partition or a block of a whole graph"
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

    /// What an aggregation takes: factors of source and of destination rows.
    pub(crate) fn options(self, edges: &Edges<'_>) -> AggregateOptions {
        let of = |of, power| Some(edges.degree_scale(of, power));
        let (source, destination) = match self {
            Self::None => (None, None),
            Self::Left => (of(DegreesOf::Sources, -1.0), None),
            Self::Right => (None, of(DegreesOf::Messages, -1.0)),
            Self::Both => (of(DegreesOf::Sources, -0.5), of(DegreesOf::Destinations, -0.5)),
            // Sources before they travel: their owners know their in-degrees.
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
    /// Whether the layer has a weight; without one it takes that of the caller, or none.
    #[config(default = true)]
    pub weight: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// How weights are drawn; biases begin with 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Graph convolution, `y[v] = r_v · Σ_(u,v,e) l_u · w_e · x[u] W + b`.
///
/// `l` and `r` are set by [`DegreeNorm`]. Edge weights do not enter the degrees: to normalise by sums of weights, use
/// [`EdgeWeightNorm`](crate::EdgeWeightNorm) with [`DegreeNorm::None`]. The caller must add self loops, as the
/// paper does (`Graph::add_self_loops`).
///
/// `W` is the layer's own; without (`weight` false) that of [`with_weight`](Self::with_weight), or none: then
/// `d_output` must be `d_input`.
///
/// # Shapes
/// `x: [num_input, d_input]`, `w: [num_edges]` in edge-id order, output `[num_dst, d_output]`.
/// A destination without in-edges gets the bias.
///
/// Weights are multiplied before aggregation when that reduces the feature size, so the halo exchange and
/// the sum move `min(d_input, d_output)` features.
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
    /// `[d_input, d_output]`, if it is the layer's own.
    pub weight: Option<Param<Tensor<2>>>,
    /// `[d_output]`.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    norm: DegreeNorm,
}

impl GcnConvConfig {
    /// Weights by [`initializer`](Self::initializer), Glorot's rule by default, bias 0.
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
    /// The layer with a weight `[d_input, d_output]` of the caller, for a layer without one (`weight` false); gradients
    /// flow to it.
    ///
    /// # Panics
    /// A layer with a weight of its own.
    #[track_caller]
    #[must_use]
    pub fn with_weight(&self, weight: Tensor<2>) -> Self {
        assert!(
            self.weight.is_none(),
            "gcn_conv: got a weight for a layer that has its own; describe it with `weight` false"
        );
        Self { weight: Some(Param::initialized(ParamId::new(), weight)), ..self.clone() }
    }
}

/// Where the layer multiplies first, factors, bias and activation are part of the one pass over the edges; where it
/// aggregates first, bias, activation and dropout are one pass over the product.
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
        // Not read: features of destinations would wait for the end of the layer.
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
