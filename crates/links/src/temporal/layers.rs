//! Defines layers that the models of events share: linear maps, time encodings, cells, attention, the decoder.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, LayerNormConfig, Linear};
use burn::tensor::activation::sigmoid;
use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_graph::Relation;
use burn_gnn_models::select_rows;
use burn_gnn_ops::{
    Activation, RowDropout, Stream, attention, bias_activation, cat_features, dropout, matmul_rows,
    next_stream, u_dot_v, uniform_rows,
};

use super::history::RecentEvents;

/// Dropout of one training step: its masks are functions of the seed, the step, the layer, the number of the row and the
/// column.
#[derive(Clone, Debug)]
pub struct StepDropout {
    /// Probability that an entry is dropped.
    pub prob: f64,
    /// Seed of the run.
    pub seed: u64,
    /// Number of the step.
    pub step: u64,
    /// Number of each row; `None` counts from 0. A rank that computes some rows of a batch gives them their numbers in
    /// the whole batch, so that its masks are those of one machine.
    pub rows: Option<Arc<[u64]>>,
}

impl StepDropout {
    /// The same dropout for rows with these numbers.
    pub(crate) fn of_rows(&self, rows: Option<&[u32]>) -> Self {
        let rows = rows.map(|rows| rows.iter().map(|&row| u64::from(row)).collect());
        Self { rows, ..self.clone() }
    }
    /// The same dropout where each row has become `k` consecutive rows.
    pub(crate) fn split_rows(&self, k: usize) -> Self {
        let k = k as u64;
        let split = |rows: &Arc<[u64]>| {
            rows.iter().flat_map(|row| (0..k).map(move |i| row * k + i)).collect()
        };
        Self { rows: self.rows.as_ref().map(split), ..self.clone() }
    }
}

/// Drops entries of `x` under the mask of a layer; `None` returns `x`.
pub(crate) fn drop_entries(x: Tensor<2>, of: Option<&StepDropout>, layer: &str) -> Tensor<2> {
    match of {
        Some(d) if d.prob > 0.0 => {
            dropout(x, d.prob, Stream::new(d.seed, layer, d.step), d.rows.clone())
        }
        _ => x,
    }
}

/// A linear layer with PyTorch's initial values, uniform in `±1 / sqrt(d_input)`, from the streams of a
/// [`seeded`](burn_gnn_ops::seeded) scope.
pub(crate) fn linear(d_input: usize, d_output: usize, bias: bool, device: &Device) -> Linear {
    linear_within(1.0 / (d_input.max(1) as f64).sqrt(), [d_input, d_output], bias, device)
}

/// A linear layer with initial values uniform in `±bound`.
fn linear_within(
    bound: f64,
    [d_input, d_output]: [usize; 2],
    bias: bool,
    device: &Device,
) -> Linear {
    let uniform = |rows, cols| uniform_rows(next_stream(device), None, rows, cols, -bound, bound);
    let weight = Param::from_tensor(Tensor::from_data(uniform(d_input, d_output), device));
    let vector = || Tensor::<2>::from_data(uniform(1, d_output), device).reshape([d_output]);
    Linear { weight, bias: bias.then(|| Param::from_tensor(vector())) }
}

/// `x · w + b`, with an activation in the same pass.
pub(crate) fn apply(linear: &Linear, x: Tensor<2>, activation: Activation) -> Tensor<2> {
    let bias = linear.bias.as_ref().map(Param::val);
    bias_activation(matmul_rows(x, linear.weight.val()), bias, activation, None)
}

/// `x · w + b`.
pub(crate) fn affine(linear: &Linear, x: Tensor<2>) -> Tensor<2> {
    apply(linear, x, Activation::None)
}

/// A tensor of rows on the host.
pub(crate) fn matrix(values: Vec<f32>, cols: usize, device: &Device) -> Tensor<2> {
    let rows = values.len().checked_div(cols).unwrap_or(0);
    Tensor::from_data(TensorData::new(values, [rows, cols]), device)
}

/// Encodes lengths of time as cosines, `cos(w dt + b)` (Xu et al., ICLR 2020). `w` is initially a geometric sequence of
/// frequencies from `1 / shortest` to `1 / longest`.
///
/// DyGLib uses the periods 1 to 10⁹, in seconds.
#[derive(Module, Debug)]
pub struct TimeEncoding {
    /// Frequencies, `[size]`.
    pub frequencies: Param<Tensor<1>>,
    /// Phases, `[size]`.
    pub phases: Param<Tensor<1>>,
    #[module(skip)]
    pub(crate) trains: bool,
}

impl TimeEncoding {
    /// Frequencies between those of the periods `2π shortest` and `2π longest`, which must be positive. Without `trains` they are constant, as
    /// in GraphMixer.
    pub fn new(size: usize, [shortest, longest]: [f64; 2], trains: bool, device: &Device) -> Self {
        let ratio = shortest / longest;
        let frequency =
            |i: usize| (ratio.powf(i as f64 / (size.max(2) - 1) as f64) / shortest) as f32;
        let values: Vec<f32> = (0..size).map(frequency).collect();
        let of = |values: Vec<f32>| {
            let tensor = Tensor::from_data(TensorData::new(values, [size]), device);
            let param = Param::from_tensor(tensor);
            if trains { param } else { param.set_require_grad(false) }
        };
        Self { frequencies: of(values), phases: of(vec![0.0; size]), trains }
    }

    /// Number of features.
    pub fn size(&self) -> usize {
        self.frequencies.dims()[0]
    }

    /// Encodes each length of time: `[dt.len(), size]`.
    pub fn forward(&self, dt: &[i64]) -> Tensor<2> {
        let (mut w, mut b) = (self.frequencies.val(), self.phases.val());
        if !self.trains {
            (w, b) = (w.without_autodiff(), b.without_autodiff());
        }
        let device = w.device().without_autodiff();
        let dt = matrix(dt.iter().map(|&dt| dt as f32).collect(), 1, &device);
        (dt * w.unsqueeze::<2>() + b.unsqueeze::<2>()).cos()
    }
}

/// A gated recurrent unit, with the gates `r`, `z`, `n` in the order of PyTorch's `GRUCell`.
#[derive(Module, Debug)]
pub struct GruCell {
    /// `[d_input, 3 · hidden]` and a bias.
    pub input: Linear,
    /// `[hidden, 3 · hidden]` and a bias.
    pub hidden: Linear,
}

impl GruCell {
    /// PyTorch's initial values, uniform in `±1 / sqrt(hidden)`.
    pub fn new(d_input: usize, hidden: usize, device: &Device) -> Self {
        let linear = |d| linear_within(1.0 / (hidden as f64).sqrt(), [d, 3 * hidden], true, device);
        Self { input: linear(d_input), hidden: linear(hidden) }
    }
    /// The next state: `(1 - z) n + z h` with `n = tanh(W_n x + b + r (U_n h + c))`.
    pub fn forward(&self, x: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        let d = h.dims()[1];
        let (a, b) = (affine(&self.input, x), affine(&self.hidden, h.clone()));
        let part = |t: &Tensor<2>, i: usize| t.clone().slice_dim(1, i * d..(i + 1) * d);
        let r = sigmoid(part(&a, 0) + part(&b, 0));
        let z = sigmoid(part(&a, 1) + part(&b, 1));
        let n = (part(&a, 2) + r * part(&b, 2)).tanh();
        n.clone() + z * (h - n)
    }
}

/// A recurrent unit `tanh(W x + b + U h + c)`.
#[derive(Module, Debug)]
pub struct RnnCell {
    /// `[d_input, hidden]` and a bias.
    pub input: Linear,
    /// `[hidden, hidden]` and a bias.
    pub hidden: Linear,
}

impl RnnCell {
    /// PyTorch's initial values, uniform in `±1 / sqrt(hidden)`.
    pub fn new(d_input: usize, hidden: usize, device: &Device) -> Self {
        let linear = |d| linear_within(1.0 / (hidden as f64).sqrt(), [d, hidden], true, device);
        Self { input: linear(d_input), hidden: linear(hidden) }
    }
    /// The next state.
    pub fn forward(&self, x: Tensor<2>, h: Tensor<2>) -> Tensor<2> {
        (affine(&self.input, x) + affine(&self.hidden, h)).tanh()
    }
}

/// Attention of nodes over their latest events (Xu et al., ICLR 2020, as in TGAT and TGN), followed by the merge with the
/// features of the node.
///
/// ```text
/// q[i] = W_q [x[i], φ(0)];   k[e] = W_k [y[e], f[e], φ(dt[e])];   v[e] = W_v [..]
/// a[i] = Σ over the events e of i of softmax(⟨q[i], k[e]⟩ / sqrt(d)) v[e]      per head
/// h[i] = layer_norm(W_o a[i] + [x[i], φ(0)]);   result = W_2 relu(W_1 [h[i], x[i]])
/// ```
/// A node without events has `a[i] = 0`.
#[derive(Module, Debug)]
pub struct TemporalAttention {
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) output: Linear,
    pub(crate) norm: LayerNorm,
    pub(crate) merge: [Linear; 2],
    #[module(skip)]
    pub(crate) heads: usize,
}

impl TemporalAttention {
    /// `node`: features of a node; `event`: features of an event; `time`: size of the time encoding; `heads` must divide
    /// `node + time`.
    pub fn new(node: usize, event: usize, time: usize, heads: usize, device: &Device) -> Self {
        let (width, keys) = (node + time, node + event + time);
        Self {
            query: linear(width, width, false, device),
            key: linear(keys, width, false, device),
            value: linear(keys, width, false, device),
            output: linear(width, width, true, device),
            norm: LayerNormConfig::new(width).init(device),
            merge: [linear(width + node, node, true, device), linear(node, node, true, device)],
            heads,
        }
    }

    /// New features of the nodes, `[n, node]`.
    ///
    /// `x`: features of the nodes, `[n, node]`; `zero`: encoding of a length of time of 0, `[1, time]`; `neighbors`,
    /// `events` and `times`: features of the other node, of the event, and encoding of `dt`, one row per entry of
    /// `recent`; `layer`: name of the layer, which distinguishes the dropout masks of several layers.
    pub fn forward(
        &self,
        recent: &RecentEvents,
        x: Tensor<2>,
        zero: Tensor<2>,
        [neighbors, events, times]: [Tensor<2>; 3],
        dropout: Option<&StepDropout>,
        layer: &str,
    ) -> Tensor<2> {
        let ([n, _], entries) = (x.dims(), recent.events.len());
        let zero = zero.repeat_dim(0, n);
        let own = cat_features(vec![x.clone(), zero]);
        let width = own.dims()[1];
        let attended = if entries == 0 {
            Tensor::zeros([n, width], &own.device())
        } else {
            // ⟨W_k y, q⟩ = ⟨y, W_kᵀ q⟩ and Σ a W_v y = W_v Σ a y: products with rows of nodes, not of their entries, of which
            // there are several times as many.
            let size = width / self.heads;
            let keys = cat_features(vec![neighbors, events, times]);
            let [_, key_size] = keys.dims();
            let relation = entries_to_rows(recent);
            let q = matmul_rows(own.clone(), self.query.weight.val());
            let head = |head: usize| {
                let columns = head * size..(head + 1) * size;
                let of = |linear: &Linear| linear.weight.val().slice_dim(1, columns.clone());
                let q = q.clone().slice_dim(1, columns.clone());
                let queries = matmul_rows(q, of(&self.key).transpose());
                let logits = u_dot_v::<2, 2, 2>(&relation, keys.clone(), queries);
                let logits = logits.reshape([entries, 1]) / (size as f64).sqrt();
                let rows = keys.clone().reshape([entries, 1, key_size]);
                let mixed = attention(&relation, logits, rows, None).reshape([n, key_size]);
                matmul_rows(mixed, of(&self.value))
            };
            cat_features((0..self.heads).map(head).collect())
        };
        let out = drop_entries(affine(&self.output, attended), dropout, layer);
        let h = self.norm.forward(out + own);
        let hidden = apply(&self.merge[0], cat_features(vec![h, x]), Activation::Relu);
        affine(&self.merge[1], hidden)
    }
}

/// The relation from entries to rows.
pub(crate) fn entries_to_rows(recent: &RecentEvents) -> Relation {
    let entries = recent.events.len();
    let src = (0..entries as u32).collect();
    match Relation::from_coo(entries, recent.len(), src, recent.rows()) {
        Ok(relation) => relation,
        Err(e) => unreachable!("entries and rows are in range: {e}"),
    }
}

/// Two linear layers with a ReLU between them, each followed by dropout. The papers of GraphMixer and DyGFormer have a
/// GELU, which takes several passes over the hidden layer instead of one.
#[derive(Module, Debug)]
pub(crate) struct FeedForward {
    pub(crate) first: Linear,
    pub(crate) second: Linear,
}

impl FeedForward {
    pub(crate) fn new(size: usize, hidden: usize, device: &Device) -> Self {
        Self {
            first: linear(size, hidden, true, device),
            second: linear(hidden, size, true, device),
        }
    }
    pub(crate) fn forward(
        &self,
        x: Tensor<2>,
        dropout: Option<&StepDropout>,
        layer: &str,
    ) -> Tensor<2> {
        let of = |part: &str| {
            let prob = dropout.filter(|d| d.prob > 0.0)?;
            let stream = Stream::new(prob.seed, &format!("{layer}/{part}"), prob.step);
            Some(RowDropout { prob: prob.prob, stream, ids: prob.rows.clone() })
        };
        let step = |l: &Linear, x, activation, part| {
            let bias = l.bias.as_ref().map(Param::val);
            bias_activation(matmul_rows(x, l.weight.val()), bias, activation, of(part).as_ref())
        };
        let hidden = step(&self.first, x, Activation::Relu, "1");
        step(&self.second, hidden, Activation::None, "2")
    }
}

/// Scores pairs of embeddings: `W_2 relu(W_1 [a, b])`.
#[derive(Module, Debug)]
pub(crate) struct PairDecoder {
    pub(crate) first: Linear,
    pub(crate) second: Linear,
}

impl PairDecoder {
    pub(crate) fn new(size: usize, device: &Device) -> Self {
        Self { first: linear(2 * size, size, true, device), second: linear(size, 1, true, device) }
    }
    pub(crate) fn forward(&self, a: Tensor<2>, b: Tensor<2>) -> Tensor<1> {
        let rows = a.dims()[0];
        let hidden = apply(&self.first, cat_features(vec![a, b]), Activation::Relu);
        affine(&self.second, hidden).reshape([rows])
    }
    /// Scores pairs of rows of `z`.
    pub(crate) fn of_rows(&self, z: Tensor<2>, src: &[u32], dst: &[u32]) -> Tensor<1> {
        self.forward(select_rows(z.clone(), src), select_rows(z, dst))
    }
}

/// Features of events, one row per entry: whether the node is the source, and the features of the stream.
pub(crate) fn event_features(
    events: &burn_gnn_data::EventStream,
    recent: &RecentEvents,
    device: &Device,
) -> Tensor<2> {
    let size = events.feature_size();
    let mut values = Vec::with_capacity(recent.events.len() * (size + 1));
    for (&event, &is_source) in recent.events.iter().zip(&recent.is_source) {
        values.push(if is_source { 1.0 } else { 0.0 });
        values.extend_from_slice(events.features_of(event as usize));
    }
    matrix(values, size + 1, &device.clone().without_autodiff())
}
