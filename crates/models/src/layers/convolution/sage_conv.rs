//! Implements the GraphSAGE layer.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::{Initializer, Linear};
use burn::tensor::{DType, Device, FloatDType, Tensor, TensorData};
use burn_gnn_ops::{Activation, Edges, Endpoints, Reduce, matmul_rows, matmul_rows_onto};

use crate::layers::conv::{Conv, multiplies_first, reduce_sources};
use crate::layers::dense::lstm::{LstmCell, over_neighbours};
use crate::layers::dense::mlp::{add_bias, apply_then};
use crate::params::init;
use crate::params::init::Init;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained};

/// How [`SageConv`] aggregates the neighbours of a node.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum SageAggregator {
    /// Mean.
    Mean,
    /// Sum.
    Sum,
    /// Element-wise maximum.
    Max,
    /// Mean of the neighbours and the node itself, with one weight for both.
    Gcn,
    /// Element-wise maximum of `relu(x W_pool + b_pool)`.
    Pool,
    /// Last state of an LSTM that reads neighbours in the order of edge ids.
    Lstm,
}

/// Describes a [`SageConv`].
#[derive(Config, Debug)]
pub struct SageConvConfig {
    /// Feature size of source nodes.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// Feature size of destination nodes. `None`: `d_input`.
    pub d_dst: Option<usize>,
    /// How neighbours are aggregated.
    #[config(default = "SageAggregator::Mean")]
    pub aggregator: SageAggregator,
    /// Whether `x[v] W_self` is added. Ignored with [`SageAggregator::Gcn`].
    #[config(default = true)]
    pub root_weight: bool,
    /// Whether source features are transformed to `relu(x W_pool + b_pool)` before the aggregation. Always true with
    /// [`SageAggregator::Pool`].
    #[config(default = false)]
    pub project: bool,
    /// Whether a bias is added.
    #[config(default = true)]
    pub bias: bool,
    /// Whether each row of the result is divided by its L2 norm, as in the paper, before the activation.
    #[config(default = false)]
    pub normalize: bool,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// GraphSAGE layer: combines a node with an aggregate of its neighbours, by separate weights for both.
///
/// `y[v] = x[v] W_self + AGG(x[u] : (u, v)) W_neigh + b`:
///
/// ```text
/// mean   AGG = 1 / deg(v) · Σ_(u,v,e) w_e · x[u]
/// sum    AGG = Σ_(u,v,e) w_e · x[u]
/// max    AGG = max over (u, v, e) of w_e · x[u]
/// pool   AGG = max over (u, v, e) of w_e · relu(x[u] W_pool + b_pool)
/// lstm   AGG = last state of an LSTM over x[u], edges in the order of their ids
/// gcn    y[v] = (Σ_(u,v,e) w_e · x[u] + x[v]) / (deg(v) + 1) · W_neigh + b
/// ```
/// `deg` counts the edges of the relation (on a block, the sampled edges), and `w` are edge weights or 1. With
/// `normalize`, `y[v]` is divided by `max(‖y[v]‖₂, 1e-12)`, so a row of zeros stays a row of zeros.
///
/// # Shapes
/// Sources `[num_input, d_input]`, destinations `[num_input, d_dst]`, `w: [num_edges]`, output `[num_dst, d_output]`.
/// The output of a node without in-edges is `x[v] W_self + b`.
///
/// # Differences from the paper and from other libraries
/// The layer reads all edges of the relation; a sampler chooses neighbours. L2 normalisation is off by default and
/// precedes the activation, as in PyTorch Geometric. The LSTM reads edges in a fixed order, where the paper shuffles
/// them. PyG's LSTM also reads zeros after the neighbours of a node, up to the largest degree.
///
/// # Cost
/// With mean, sum and gcn, features are multiplied by `W_neigh` before the aggregation if that reduces the feature size;
/// the halo exchange and the sum then process `d_output` features. The LSTM keeps four gates for every edge.
///
/// # Paper
/// Hamilton, Ying, Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017.
#[derive(Module, Debug)]
pub struct SageConv {
    /// `W_self: [d_dst, d_output]` and `b`; `None` with gcn or without `root_weight`.
    pub fc_self: Option<Linear>,
    /// `W_neigh: [d_input, d_output]`.
    pub fc_neigh: Linear,
    /// `W_pool: [d_input, d_input]` and `b_pool`, with pool or `project`.
    pub fc_pool: Option<Linear>,
    /// The LSTM, with [`SageAggregator::Lstm`].
    pub lstm: Option<LstmCell>,
    /// `b: [d_output]`, if there is no `fc_self` to contain it.
    pub bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    aggregator: SageAggregator,
    #[module(skip)]
    normalize: bool,
}

/// Divides every row by its L2 norm.
fn unit_rows(x: Tensor<2>) -> Tensor<2> {
    // 16-bit types cannot represent the bound and the squares.
    let dtype = x.dtype();
    let x = if matches!(dtype, DType::F16 | DType::BF16) { x.cast(FloatDType::F32) } else { x };
    // The bound precedes the root, whose derivative at 0 is infinite. The mask sets the gradient of a row of zeros to
    // 0; without it, it would be 1 / bound.
    let squares = (x.clone() * x.clone()).sum_dim(1);
    let flat = squares.clone().equal_elem(0.0).expand(x.shape());
    let unit = (x / squares.clamp_min(1e-24).sqrt()).mask_fill(flat, 0.0);
    if unit.dtype() == dtype { unit } else { unit.cast(FloatDType::from(dtype)) }
}

impl SageConvConfig {
    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    pub fn init(&self, device: &Device) -> SageConv {
        let (i, o) = (self.d_input, self.d_output);
        let init = Init { initializer: &self.initializer, device };
        let is = |a| self.aggregator == a;
        let root = self.root_weight && !is(SageAggregator::Gcn);
        SageConv {
            fc_self: root.then(|| init.linear([self.d_dst.unwrap_or(i), o], self.bias)),
            fc_neigh: init.linear([i, o], false),
            fc_pool: (self.project || is(SageAggregator::Pool)).then(|| init.linear([i, i], true)),
            lstm: is(SageAggregator::Lstm).then(|| LstmCell::new([i, i], device)),
            bias: (self.bias && !root).then(|| init::zeros(o, device)),
            aggregator: self.aggregator,
            normalize: self.normalize,
        }
    }
}

impl SageConv {
    /// Whether features are multiplied by `fc_neigh` before the aggregation.
    fn multiplies_first(&self) -> bool {
        multiplies_first(&self.fc_neigh.weight.val())
            && self.fc_pool.is_none()
            && matches!(
                self.aggregator,
                SageAggregator::Mean | SageAggregator::Sum | SageAggregator::Gcn
            )
    }
}

impl Conv for SageConv {
    const NAME: &'static str = "sage_conv";
    const READS_WEIGHT: bool = true;
    const FUSES_EPILOGUE: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        let size = |layer: &Linear| layer.weight.val().dims()[0];
        let of_src = size(self.fc_pool.as_ref().unwrap_or(&self.fc_neigh));
        // gcn adds source and destination features, which must be of the same size.
        let d_gcn = (self.aggregator == SageAggregator::Gcn).then_some(of_src);
        [Some(of_src), self.fc_self.as_ref().map(size).or(d_gcn)]
    }

    fn project(&self, _edges: &Edges<'_>, x: Tensor<2>) -> Tensor<2> {
        match &self.fc_pool {
            Some(pool) => apply_then(pool, x, Activation::Relu),
            None if self.multiplies_first() => matmul_rows(x, self.fc_neigh.weight.val()),
            None => x,
        }
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, x: Endpoints) -> Tensor<2> {
        let relation = edges.relation();
        let reduce = |by, x| reduce_sources(edges, by, x);
        let src = x.src.clone();
        let h = match (self.aggregator, &self.lstm) {
            (SageAggregator::Mean, _) => reduce(Reduce::Mean, src),
            (SageAggregator::Sum, _) => reduce(Reduce::Sum, src),
            (SageAggregator::Max | SageAggregator::Pool, _) => reduce(Reduce::Max, src),
            (SageAggregator::Gcn, _) => {
                let dst = x.projected_dst(&src, |x| self.project(edges, x));
                let (device, dtype) = (src.device(), src.dtype());
                let factors: Vec<f64> =
                    relation.in_degrees().map(|d| 1.0 / (f64::from(d) + 1.0)).collect();
                let factors = TensorData::new(factors, [relation.num_dst(), 1]);
                (reduce(Reduce::Sum, src) + dst) * Tensor::<2>::from_data(factors, (&device, dtype))
            }
            (SageAggregator::Lstm, Some(cell)) => {
                assert!(
                    edges.weight().is_none(),
                    "sage_conv: expected no edge weights with `SageAggregator::Lstm`, got some; remove them"
                );
                over_neighbours(cell, relation, src)
            }
            (SageAggregator::Lstm, None) => {
                unreachable!("`init` creates the LSTM")
            }
        };
        let h =
            if self.multiplies_first() { h } else { matmul_rows(h, self.fc_neigh.weight.val()) };
        let (h, bias) = match &self.fc_self {
            Some(fc) => (matmul_rows_onto(x.dst, fc.weight.val(), h), &fc.bias),
            None => (h, &self.bias),
        };
        let bias = bias.as_ref().map(|b| b.val());
        if self.normalize {
            return edges.finish(unit_rows(add_bias(h, bias)), None);
        }
        edges.finish(h, bias)
    }
}

impl Pretrained for SageConv {
    /// Loads PyG's LSTM weights too, although PyG's layer computes something else: it also reads zeros after the
    /// neighbours of a node, up to the largest degree of the graph.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        if let Some(rest) = path.strip_prefix("lstm.") {
            let is_dgl = from == Framework::Dgl;
            let prefix = if is_dgl { "lstm." } else { "aggr_module.lstm." };
            return LstmCell::param_mapping(prefix, rest);
        }
        ParamMapping::same(match (from, path) {
            (Framework::Pyg, "fc_neigh.weight") => "lin_l.weight",
            (Framework::Pyg, "fc_self.weight") => "lin_r.weight",
            (Framework::Pyg, "fc_self.bias" | "bias") => "lin_l.bias",
            (Framework::Pyg, "fc_pool.weight") => "lin.weight",
            (Framework::Pyg, "fc_pool.bias") => "lin.bias",
            _ => path,
        })
    }
}
