//! Principal neighbourhood aggregation.

use burn::config::Config;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_ops::{Activation, GraphView, Reduce, Side, bias_activation, gspmm_copy, matmul_rows, u_add_e};

use crate::ModelError;
use crate::conv::{Ends, end_rows, where_reached};
use crate::mlp::{apply, linear};

/// One way in which [`PnaConv`] sums up messages.
#[derive(Config, Debug, PartialEq, Eq, Copy)]
pub enum PnaAggregator {
    /// Sum.
    Sum,
    /// Mean.
    Mean,
    /// Largest entry.
    Max,
    /// Smallest entry.
    Min,
    /// `relu(mean m² - (mean m)²)`.
    Var,
    /// `sqrt(Var + 1e-5)`.
    Std,
}

/// One way in which [`PnaConv`] scales by degree, `d` at least 1.
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
    /// Columns of the input.
    pub d_input: usize,
    /// Columns of the output.
    pub d_output: usize,
    /// `δ`, the mean of `ln(in-degree + 1)` over the nodes trained on; see [`from_graph`](Self::from_graph).
    pub delta: f64,
    /// Columns of edge rows, if there are any.
    pub d_edge: Option<usize>,
    /// How messages are summed up.
    #[config(default = "vec![PnaAggregator::Mean, PnaAggregator::Max, PnaAggregator::Min, PnaAggregator::Std]")]
    pub aggregators: Vec<PnaAggregator>,
    /// How sums are scaled.
    #[config(default = "vec![PnaScaler::Identity, PnaScaler::Amplification, PnaScaler::Attenuation]")]
    pub scalers: Vec<PnaScaler>,
    /// Seed of the initial weights.
    #[config(default = 0)]
    pub seed: u64,
    /// Name that keys initial weights; give layers of one model different names.
    #[config(default = "String::from(\"pna_conv\")")]
    pub name: String,
}

/// Principal neighbourhood aggregation,
///
/// ```text
/// m[e] = x[v] W_1 + x[u] W_2 + f[e] W_3 + b
/// y[v] = [x[v], every scaler(deg(v)) · every aggregator(m over in-edges)] W + c
/// ```
///
/// # Shapes
/// Both ends `[num_input, d_input]`, `f: [num_edges, d_edge]`, output `[num_dst, d_output]`. A node without in-edges has
/// zeros for all aggregators.
///
/// # Departures from the paper
/// One tower, and one linear map before and behind the sums; DGL and PyG have another behind that, so their weights do not fit.
///
/// # Cost
/// `m` is linear, so what belongs to `v` is added behind the sums (variances do not see it) and without edge rows
/// nothing is made per edge: one pass over the edges per aggregator, two for the variance.
///
/// # Paper
/// Corso, Cavalleri, Beaini, Liò, Veličković, "Principal neighbourhood aggregation for graph nets", NeurIPS 2020.
#[derive(Module, Debug)]
pub struct PnaConv {
    /// `W_1: [d_input, d_input]` and `b`.
    pub pre_dst: Linear,
    /// `W_2: [d_input, d_input]`.
    pub pre_src: Linear,
    /// `W_3: [d_edge, d_input]`.
    pub pre_edge: Option<Linear>,
    /// `[(1 + aggregators · scalers) · d_input, d_output]` and `c`.
    pub post: Linear,
    #[module(skip)]
    config: PnaConvConfig,
}

impl PnaConvConfig {
    /// With `δ` from the in-degrees of an edge type. Take the whole graph: a partition knows its own nodes only.
    pub fn from_graph<G: GraphView + ?Sized>(g: &G, etype: usize, d_input: usize, d_output: usize) -> Self {
        let degrees = g.in_degrees(etype);
        let sum: f64 = degrees.iter().map(|&d| (f64::from(d) + 1.0).ln()).sum();
        Self::new(d_input, d_output, sum / degrees.len().max(1) as f64)
    }

    /// Weights by Glorot's rule, biases 0.
    ///
    /// # Errors
    /// No aggregator or scaler, or a `δ` that is not a positive number (a graph without edges has none).
    pub fn try_init(&self, device: &Device) -> Result<PnaConv, ModelError> {
        ModelError::check_sizes(&[("aggregators", self.aggregators.len()), ("scalers", self.scalers.len())], 0.0)?;
        if !(self.delta.is_finite() && self.delta > 0.0) {
            return Err(ModelError::OutOfRange { arg: "delta".into(), range: "numbers above 0".into(), value: self.delta.to_string() });
        }
        let d = self.d_input;
        let linear = |part: &str, widths, bias| linear(self.seed, &format!("{}/{part}", self.name), widths, bias, device);
        let parts = 1 + self.aggregators.len() * self.scalers.len();
        Ok(PnaConv {
            pre_dst: linear("pre_dst", [d, d], true),
            pre_src: linear("pre_src", [d, d], false),
            pre_edge: self.d_edge.map(|e| linear("pre_edge", [e, d], false)),
            post: linear("post", [parts * d, self.d_output], true),
            config: self.clone(),
        })
    }

    /// [`try_init`](Self::try_init), panicking with its message.
    ///
    /// # Panics
    /// As [`try_init`](Self::try_init) errs.
    #[track_caller]
    pub fn init(&self, device: &Device) -> PnaConv {
        self.try_init(device).unwrap_or_else(|e| panic!("{e}"))
    }
}

impl PnaConv {
    /// On one edge type; `edge` holds edge rows exactly where the layer was described with them.
    ///
    /// # Panics
    /// Shapes that disagree with the graph, edge rows that are missing or not expected.
    #[track_caller]
    pub fn forward_on<G: GraphView + ?Sized>(&self, g: &G, etype: usize, x: impl Into<Ends>, edge: Option<Tensor<2>>) -> Tensor<2> {
        let rows = end_rows(g, "pna_conv", etype, x.into(), |x| x);
        let relation = g.relation(etype);
        let src = matmul_rows(rows.src, self.pre_src.weight.val());
        let (side, m) = match (&self.pre_edge, edge) {
            (Some(pre), Some(f)) => (Side::Rhs, u_add_e(relation, src, matmul_rows(f, pre.weight.val()))),
            (None, None) => (Side::Lhs, src),
            (Some(_), None) => panic!("pna_conv: the layer was made for edge rows (`d_edge`), got none"),
            (None, Some(_)) => panic!("pna_conv: the layer was made without edge rows, got some; set `d_edge`"),
        };
        let own = apply(&self.pre_dst, rows.dst.clone(), Activation::None);
        let reduce = |by, m: Tensor<2>| gspmm_copy(relation, side, by, m);
        let (device, dtype) = (m.device().without_autodiff(), m.dtype());
        let degrees: Vec<f64> = relation.in_degrees().map(f64::from).collect();
        let column = |of: &dyn Fn(f64) -> f64| {
            let values: Vec<f64> = degrees.iter().map(|&d| of(d)).collect();
            Tensor::<2>::from_data(TensorData::new(values, [degrees.len(), 1]), (&device, dtype))
        };
        let var = || {
            let mean = reduce(Reduce::Mean, m.clone());
            (reduce(Reduce::Mean, m.clone() * m.clone()) - mean.clone() * mean).clamp_min(0.0)
        };
        let mut parts = vec![rows.dst];
        for by in &self.config.aggregators {
            let y = match by {
                PnaAggregator::Sum => reduce(Reduce::Sum, m.clone()) + own.clone() * column(&|d| d),
                PnaAggregator::Mean => reduce(Reduce::Mean, m.clone()) + own.clone(),
                PnaAggregator::Max => reduce(Reduce::Max, m.clone()) + own.clone(),
                PnaAggregator::Min => reduce(Reduce::Min, m.clone()) + own.clone(),
                PnaAggregator::Var => var(),
                PnaAggregator::Std => (var() + 1e-5).sqrt(),
            };
            let y = where_reached(relation, y);
            let delta = self.config.delta;
            parts.extend(self.config.scalers.iter().map(|s| match s {
                PnaScaler::Identity => y.clone(),
                PnaScaler::Amplification => y.clone() * column(&|d| (d.max(1.0) + 1.0).ln() / delta),
                PnaScaler::Attenuation => y.clone() * column(&|d| delta / (d.max(1.0) + 1.0).ln()),
            }));
        }
        // The product of [part, part, ..], part by part: no row of all of them.
        let (d, weight) = (own.dims()[1], self.post.weight.val());
        let terms = parts.into_iter().enumerate().map(|(i, x)| matmul_rows(x, weight.clone().slice_dim(0, i * d..(i + 1) * d)));
        let y = terms.reduce(|a, b| a + b).unwrap_or_else(|| unreachable!("destination rows are a part"));
        bias_activation(y, self.post.bias.as_ref().map(|b| b.val()), Activation::None, None)
    }
}
