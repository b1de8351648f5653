//! Implements principal neighbourhood aggregation (PNA).

use std::ops::Range;

use burn::config::Config;
use burn::module::Module;
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear};
use burn::tensor::{Device, Tensor, TensorData, activation};
use burn_gnn_graph::Relation;
use burn_gnn_ops::{
    Edges, Endpoints, Reduce, Side, div_by, gspmm_copy, matmul_rows, u_add_e, u_add_v,
};

use crate::error::ModelError;
use crate::layers::conv::{Conv, edge_rows, residual, where_reached};
use crate::layers::dense::mlp::{add_bias, apply, apply_some, normalised, root};
use crate::params::init::{Init, panicking_init};
use crate::pretrained::buffers::Buffer;
use crate::pretrained::param_mapping::ParamMapping;
use crate::pretrained::weight_names::{Framework, Pretrained, indexed};

/// An aggregator of [`PnaConv`].
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum PnaAggregator {
    /// Sum.
    Sum,
    /// Mean.
    Mean,
    /// Element-wise maximum.
    Max,
    /// Element-wise minimum.
    Min,
    /// `relu(mean m² - (mean m)²)`.
    Var,
    /// `sqrt(Var + ε)` with the `ε` of [`PnaConvConfig::std_eps`]. With [`PnaConvConfig::mixing`], as in PyTorch
    /// Geometric, `sqrt(Var)` if `Var > ε`, otherwise 0 with gradient 0.
    Std,
}

/// A factor by which [`PnaConv`] scales aggregates, a function of the degree `d` (at least 1).
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum PnaScaler {
    /// 1.
    Identity,
    /// `ln(d + 1) / δ`.
    Amplification,
    /// `δ / ln(d + 1)`.
    Attenuation,
}

/// Describes a [`PnaConv`].
#[derive(Config, Debug)]
pub struct PnaConvConfig {
    /// Input feature size.
    pub d_input: usize,
    /// Output feature size.
    pub d_output: usize,
    /// `δ`, the mean of `ln(in-degree + 1)` over the nodes of the training graph ([`from_edges`](Self::from_edges)).
    pub delta: f64,
    /// Feature size of edges, if the layer reads edge features.
    pub d_edge: Option<usize>,
    /// Whether a linear layer encodes edge features and another one follows the towers, as in PyTorch Geometric. This
    /// also selects PyG's [`Std`](PnaAggregator::Std).
    #[config(default = false)]
    pub mixing: bool,
    /// Number of towers: parallel layers that each compute `d_output / towers` features of the result.
    #[config(default = 1)]
    pub towers: usize,
    /// Whether each tower reads a separate slice of `d_input / towers` input features, as in DGL, instead of all.
    #[config(default = false)]
    pub divide_input: bool,
    /// Number of linear layers before the aggregation, with ReLU between them.
    #[config(default = 1)]
    pub pre_layers: usize,
    /// Number of linear layers after the aggregation, with ReLU between them.
    #[config(default = 1)]
    pub post_layers: usize,
    /// Whether, as in DGL, the result of a tower is divided by the square root of the number of nodes of the graph and
    /// batch normalised, and a linear layer with LeakyReLU and a residual follow. Excludes `mixing`.
    #[config(default = false)]
    pub batch_norm: bool,
    /// With `batch_norm`: whether the input is added if feature sizes are equal.
    #[config(default = true)]
    pub residual: bool,
    /// `ε` of the standard deviation, above 0. DGL uses `1e-30`, PyTorch Geometric `1e-5`.
    #[config(default = 1e-5)]
    pub std_eps: f64,
    /// Aggregators of messages.
    #[config(
        default = "vec![PnaAggregator::Mean, PnaAggregator::Max, PnaAggregator::Min, PnaAggregator::Std]"
    )]
    pub aggregators: Vec<PnaAggregator>,
    /// Scalers of aggregates.
    #[config(
        default = "vec![PnaScaler::Identity, PnaScaler::Amplification, PnaScaler::Attenuation]"
    )]
    pub scalers: Vec<PnaScaler>,
    /// Initializer of weights. Biases start at 0.
    #[config(default = "Initializer::XavierUniform { gain: 1.0 }")]
    pub initializer: Initializer,
}

/// Principal neighbourhood aggregation (PNA): combines several aggregators, each scaled by functions of the degree, for
/// graphs where one aggregator cannot distinguish neighbourhoods.
///
/// For every tower:
///
/// ```text
/// m[e] = pre(x[v] W_1 + x[u] W_2 + f[e] W_3 + b)
/// y[v] = post([x[v], every scaler(deg(v)) · every aggregator(m over in-edges)] W + c)
/// ```
/// Aggregates of the first scaler precede those of the second. `pre` and `post` are ReLU and a linear layer for every
/// layer after the first. Results of towers are concatenated.
///
/// With `mixing`, all towers read `f[e] W_e + b_e` instead of `f[e]`, and the concatenation is multiplied by `W_m` and
/// gets the bias `b_m`. With `batch_norm`, the result is `leaky_relu(Y W_m + b_m) + x[v]` where `Y` is the concatenation
/// of `norm(y[v] / sqrt(n))`, `n` is the number of nodes of the graph, and the slope is 0.01; `x[v]` is added if feature
/// sizes are equal.
///
/// # Shapes
/// Source and destination features `[num_input, d_input]`, `f: [num_edges, d_edge]`, output `[num_dst, d_output]`. All
/// aggregates of a node without in-edges are 0.
///
/// # Differences from the paper and from other libraries
/// The layer of the paper mixes towers: set `mixing` (PyTorch Geometric) or `batch_norm` (DGL). In training, batch
/// normalisation uses the statistics of the rows that a view computes, otherwise running means, as in
/// [`Gin`](crate::Gin). On a batch of graphs DGL divides by the number of nodes of each graph; this layer divides by that
/// of the batch.
///
/// # Cost
/// With one layer before the aggregation, `m` is linear: the term of `v` is added after the aggregation (variances do not
/// depend on it), and without edge features nothing is allocated per edge. With several layers, one row per edge and
/// layer is allocated. One pass over the edges per tower and aggregator, two for the variance.
///
/// # Paper
/// Corso, Cavalleri, Beaini, Liò, Veličković, "Principal neighbourhood aggregation for graph nets", NeurIPS 2020.
#[derive(Module, Debug)]
pub struct PnaConv {
    /// The towers, at least one.
    pub towers: Vec<PnaTower>,
    /// With `mixing`: `W_e: [d_edge, d]` and `b_e`, where `d` is the input feature size of a tower.
    pub edge_encoder: Option<Linear>,
    /// With `mixing` or `batch_norm`: `W_m: [d_output, d_output]` and `b_m`.
    pub lin: Option<Linear>,
    #[module(skip)]
    config: PnaConvConfig,
}

/// One tower of a [`PnaConv`], with `d` input features.
#[derive(Module, Debug)]
pub struct PnaTower {
    /// `W_1: [d, d]` and `b`.
    pub pre_dst: Linear,
    /// `W_2: [d, d]`.
    pub pre_src: Linear,
    /// `W_3: [d_edge, d]`; `[d, d]` with `mixing`.
    pub pre_edge: Option<Linear>,
    /// `[d, d]` and a bias, for every layer of `pre` after the first.
    pub pre_more: Vec<Linear>,
    /// `W: [(1 + aggregators · scalers) · d, d_output / towers]` and `c`.
    pub post: Linear,
    /// `[d_output / towers, d_output / towers]` and a bias, for every layer of `post` after the first.
    pub post_more: Vec<Linear>,
    /// Batch normalisation, with `batch_norm`.
    pub norm: Option<BatchNorm>,
}

impl PnaConvConfig {
    /// Describes a layer with `δ` computed from in-degrees. Use the edges of the whole graph, because a partition has
    /// only the degrees of its own nodes.
    ///
    /// # Panics
    /// `edges` is a view of several edge types.
    #[track_caller]
    pub fn from_edges<'a>(edges: impl Into<Edges<'a>>, d_input: usize, d_output: usize) -> Self {
        let edges = edges.into();
        let degrees = edges.in_degrees();
        let sum: f64 = degrees.iter().map(|&d| (f64::from(d) + 1.0).ln()).sum();
        Self::new(d_input, d_output, sum / degrees.len().max(1) as f64)
    }

    /// Initializes a layer: weights by [`initializer`](Self::initializer) (Glorot by default), biases 0.
    ///
    /// # Errors
    /// There is no aggregator, scaler, tower or layer; `delta` is not a positive number (as on a graph without edges);
    /// `towers` does not divide feature sizes; `std_eps` is not above 0; or `mixing` and `batch_norm` are both set.
    pub fn try_init(&self, device: &Device) -> Result<PnaConv, ModelError> {
        let sizes = [
            ("aggregators", self.aggregators.len()),
            ("scalers", self.scalers.len()),
            ("towers", self.towers),
            ("pre_layers", self.pre_layers),
            ("post_layers", self.post_layers),
        ];
        ModelError::check_sizes(&sizes, 0.0)?;
        for (arg, value) in [("delta", self.delta), ("std_eps", self.std_eps)] {
            let is_positive = value.is_finite() && value > 0.0;
            ModelError::check_range(arg, "numbers above 0", value, is_positive)?;
        }
        if self.mixing && self.batch_norm {
            let range = "`false` with `batch_norm`, which has a separate linear layer";
            return Err(ModelError::out_of_range("mixing", range, true));
        }
        let towers = ("towers", self.towers);
        ModelError::check_divides(towers, ("d_output", self.d_output))?;
        if self.divide_input {
            ModelError::check_divides(towers, ("d_input", self.d_input))?;
        }
        let d = if self.divide_input { self.d_input / self.towers } else { self.d_input };
        let out = self.d_output / self.towers;
        let init = Init { initializer: &self.initializer, device };
        let inputs = 1 + self.aggregators.len() * self.scalers.len();
        let more =
            |layers: usize, d: usize| (1..layers).map(|_| init.linear([d, d], true)).collect();
        let tower = |_| PnaTower {
            pre_dst: init.linear([d, d], true),
            pre_src: init.linear([d, d], false),
            pre_edge: self.d_edge.map(|e| init.linear([if self.mixing { d } else { e }, d], false)),
            pre_more: more(self.pre_layers, d),
            post: init.linear([inputs * d, out], true),
            post_more: more(self.post_layers, out),
            norm: self.batch_norm.then(|| BatchNormConfig::new(out).init(device)),
        };
        Ok(PnaConv {
            towers: (0..self.towers).map(tower).collect(),
            edge_encoder: self.d_edge.filter(|_| self.mixing).map(|e| init.linear([e, d], true)),
            lin: (self.mixing || self.batch_norm)
                .then(|| init.linear([self.d_output, self.d_output], true)),
            config: self.clone(),
        })
    }
}

panicking_init!(PnaConvConfig => PnaConv);

impl Conv for PnaConv {
    const NAME: &'static str = "pna_conv";
    const READS_FEATURES: bool = true;

    fn input_sizes(&self) -> [Option<usize>; 2] {
        [Some(self.config.d_input); 2]
    }

    #[track_caller]
    fn aggregate(&self, edges: &Edges<'_>, rows: Endpoints) -> Tensor<2> {
        let relation = edges.relation();
        let reads_edges = self
            .edge_encoder
            .as_ref()
            .or_else(|| self.towers.first().and_then(|t| t.pre_edge.as_ref()));
        let edge = edge_rows(Self::NAME, edges, reads_edges)
            .map(|(_, f)| apply_some(self.edge_encoder.as_ref(), f));
        let nodes = edges.view().total_nodes(edges.endpoints().1).max(1);
        let tower = |(i, tower): (usize, &PnaTower)| {
            let [d, _] = tower.pre_src.weight.val().dims();
            let part = |x: &Tensor<2>| {
                if self.config.divide_input { columns(x, i * d..(i + 1) * d) } else { x.clone() }
            };
            let y = tower.forward(
                relation,
                part(&rows.src),
                part(&rows.dst),
                edge.clone(),
                &self.config,
            );
            let Some(norm) = &tower.norm else { return y };
            normalised(norm, div_by(y, (nodes as f64).sqrt()))
        };
        let y = concat_columns(self.towers.iter().enumerate().map(tower).collect());
        match &self.lin {
            Some(lin) if self.config.batch_norm => {
                let y = activation::leaky_relu(apply(lin, y), 0.01);
                let adds = self.config.residual && self.config.d_input == self.config.d_output;
                residual(y, adds, None, rows.dst)
            }
            lin => apply_some(lin.as_ref(), y),
        }
    }
}

/// Selects columns of `x`. A slice of a tensor without rows leaves the autodiff graph, and a rank without nodes would then
/// skip the halo exchange in backward; a product with zeros stays in the graph.
fn columns(x: &Tensor<2>, range: Range<usize>) -> Tensor<2> {
    let [rows, all] = x.dims();
    if rows > 0 {
        return x.clone().slice_dim(1, range);
    }
    matmul_rows(x.clone(), Tensor::zeros([all, range.len()], (&x.device(), x.dtype())))
}

/// Concatenates columns of one or more tensors, and keeps tensors without rows in the autodiff graph.
fn concat_columns(mut all: Vec<Tensor<2>>) -> Tensor<2> {
    let [rows, d] = all[0].dims();
    let n = all.len();
    if n == 1 {
        return all.swap_remove(0);
    }
    if rows > 0 {
        return Tensor::cat(all, 1);
    }
    let sum = all
        .into_iter()
        .reduce(|a, b| a + b)
        .unwrap_or_else(|| unreachable!("there is at least one tensor"));
    let none = Tensor::zeros([d, n * d], (&sum.device(), sum.dtype()));
    matmul_rows(sum, none)
}

/// Applies ReLU and a linear layer, for every layer after the first.
fn more(layers: &[Linear], x: Tensor<2>) -> Tensor<2> {
    layers.iter().fold(x, |x, layer| apply(layer, activation::relu(x)))
}

impl PnaTower {
    #[track_caller]
    fn forward(
        &self,
        relation: &Relation,
        src: Tensor<2>,
        dst: Tensor<2>,
        edge: Option<Tensor<2>>,
        config: &PnaConvConfig,
    ) -> Tensor<2> {
        let src = matmul_rows(src, self.pre_src.weight.val());
        let dst_term = apply(&self.pre_dst, dst.clone());
        let edge =
            edge.zip(self.pre_edge.as_ref()).map(|(f, pre)| matmul_rows(f, pre.weight.val()));
        let (side, m, dst_term) = match edge {
            _ if !self.pre_more.is_empty() => {
                let both: Tensor<2> = u_add_v(relation, src, dst_term);
                let all = match edge {
                    Some(f) => both + f,
                    None => both,
                };
                (Side::Rhs, more(&self.pre_more, all), None)
            }
            Some(f) => (Side::Rhs, u_add_e(relation, src, f), Some(dst_term)),
            None => (Side::Lhs, src, Some(dst_term)),
        };
        let reduce = |by, m: Tensor<2>| gspmm_copy(relation, side, by, m);
        let (device, dtype) = (m.device().without_autodiff(), m.dtype());
        let degrees: Vec<f64> = relation.in_degrees().map(f64::from).collect();
        let column = |of: &dyn Fn(f64) -> f64| {
            let values: Vec<f64> = degrees.iter().map(|&d| of(d)).collect();
            Tensor::<2>::from_data(TensorData::new(values, [degrees.len(), 1]), (&device, dtype))
        };
        let var = || {
            let mean = reduce(Reduce::Mean, m.clone());
            reduce(Reduce::Mean, m.clone() * m.clone()) - mean.clone() * mean
        };
        // Adds the term of the destination, which a linear message does not contain.
        let with_dst_term = |y: Tensor<2>| match &dst_term {
            Some(term) => y + term.clone(),
            None => y,
        };
        let reduced = |by: &PnaAggregator| {
            let y = match by {
                PnaAggregator::Sum => match &dst_term {
                    Some(term) => reduce(Reduce::Sum, m.clone()) + term.clone() * column(&|d| d),
                    None => reduce(Reduce::Sum, m.clone()),
                },
                PnaAggregator::Mean => with_dst_term(reduce(Reduce::Mean, m.clone())),
                PnaAggregator::Max => with_dst_term(reduce(Reduce::Max, m.clone())),
                PnaAggregator::Min => with_dst_term(reduce(Reduce::Min, m.clone())),
                PnaAggregator::Var => var().clamp_min(0.0),
                // PyG returns 0 below a threshold, so that the derivative of the root stays finite.
                PnaAggregator::Std if config.mixing => {
                    let var = var();
                    let flat = var.clone().lower_equal_elem(config.std_eps);
                    var.clamp_min(config.std_eps).sqrt().mask_fill(flat, 0.0)
                }
                PnaAggregator::Std => root(var(), config.std_eps),
            };
            where_reached(relation, y)
        };
        let reduced: Vec<_> = config.aggregators.iter().map(reduced).collect();
        let ([_, d], delta) = (dst.dims(), config.delta);
        let mut parts = vec![dst];
        for scaler in &config.scalers {
            let scale = match scaler {
                PnaScaler::Identity => None,
                PnaScaler::Amplification => Some(column(&|d| (d.max(1.0) + 1.0).ln() / delta)),
                PnaScaler::Attenuation => Some(column(&|d| delta / (d.max(1.0) + 1.0).ln())),
            };
            parts.extend(reduced.iter().map(|y| match &scale {
                Some(scale) => y.clone() * scale.clone(),
                None => y.clone(),
            }));
        }
        // A sum of products with slices of the weight, without the concatenation of all aggregates.
        let weight = self.post.weight.val();
        let terms = parts
            .into_iter()
            .enumerate()
            .map(|(i, x)| matmul_rows(x, weight.clone().slice_dim(0, i * d..(i + 1) * d)));
        let y =
            terms.reduce(|a, b| a + b).unwrap_or_else(|| unreachable!("`parts` contains `dst`"));
        more(&self.post_more, add_bias(y, self.post.bias.as_ref().map(|b| b.val())))
    }
}

impl Pretrained for PnaConv {
    /// Set `mixing` for PyG's layer. For DGL's layer, which has one layer before and one after the aggregation, set
    /// `batch_norm`, `divide_input` and a `std_eps` of `1e-30`; its state dict does not contain δ.
    fn param_mapping(&self, from: Framework, path: &str) -> ParamMapping {
        if let (Framework::Dgl, Some(field)) = (from, path.strip_prefix("lin.")) {
            return ParamMapping::same(format!("mixing_layer.0.{field}"));
        }
        let of_tower = indexed(path).and_then(|(list, t, rest)| {
            let tower = self.towers.get(t).filter(|_| list == "towers")?;
            Some((t, tower, rest.split_once('.')?))
        });
        let Some((t, tower, (part, field))) = of_tower else { return ParamMapping::same(path) };
        let [d, _] = tower.pre_src.weight.val().dims();
        let all = 2 * d + tower.pre_edge.as_ref().map_or(0, |pre| pre.weight.val().dims()[0]);
        // The first rows of the weight belong to destinations in PyG, to sources in DGL.
        let (before, after, [dst, src]) = match from {
            Framework::Pyg => {
                (format!("pre_nns.{t}.0"), format!("post_nns.{t}.0"), [0..d, d..2 * d])
            }
            Framework::Dgl => (format!("towers.{t}.M"), format!("towers.{t}.U"), [d..2 * d, 0..d]),
        };
        // A `Sequential` counts the ReLU between layers.
        let later = |field: &str| {
            let (layer, field) = field.split_once('.')?;
            Some(format!("{}.{field}", 2 * (layer.parse::<usize>().ok()? + 1)))
        };
        let first = || ParamMapping::same(format!("{before}.{field}"));
        match (part, later(field)) {
            ("pre_more", Some(name)) => ParamMapping::same(format!("pre_nns.{t}.{name}")),
            ("post_more", Some(name)) => ParamMapping::same(format!("post_nns.{t}.{name}")),
            ("pre_dst", _) if field == "bias" => first(),
            ("pre_dst", _) => first().rows(dst, all),
            ("pre_src", _) => first().rows(src, all),
            ("pre_edge", _) => first().rows(2 * d..all, all),
            ("post", _) => ParamMapping::same(format!("{after}.{field}")),
            ("norm", _) => ParamMapping::same(format!("towers.{t}.batchnorm.{field}")),
            _ => ParamMapping::same(path),
        }
    }
    fn buffers(&self, from: Framework) -> Vec<Buffer> {
        match from {
            Framework::Dgl => vec![],
            Framework::Pyg => vec![
                Buffer::option("aggr_module.avg_deg_log", self.config.delta, "delta"),
                // PyG stores it for scalers that this layer does not have.
                Buffer::unread("aggr_module.avg_deg_lin").zeros([1]),
            ],
        }
    }
}
