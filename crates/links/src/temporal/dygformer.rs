//! Defines `DyGFormer`: a transformer over the latest events of both nodes of a pair.

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear};
use burn::tensor::activation::softmax;
use burn::tensor::{Device, Tensor};
use burn_gnn_models::{ModelError, select_rows};
use burn_gnn_ops::{Activation, cat_features};

use super::checks::{at_least_one, divides, same_features, time_encoding};
use super::graph_mixer::scatter_rows;
use super::history::{DistinctNodes, EventHistory, LinkQueries};
use super::layers::{
    FeedForward, PairDecoder, StepDropout, TimeEncoding, affine, apply, drop_entries,
    event_features, linear, matrix,
};
use super::model::HistoryModel;

/// Settings of [`DyGFormer`].
#[derive(Clone, Debug)]
pub struct DyGFormerConfig {
    /// Size of each of the three channels: events, times, co-occurrence. The transformer is three times as wide.
    pub channel: usize,
    /// Size of embeddings.
    pub hidden: usize,
    /// Size of time encodings.
    pub time: usize,
    /// Shortest and longest period of time encodings.
    pub periods: [f64; 2],
    /// Length of the sequence of a node: the node itself and its `length - 1` latest events. A multiple of `patch`.
    pub length: usize,
    /// Number of consecutive entries of a sequence that become one token.
    pub patch: usize,
    /// Number of transformer layers.
    pub layers: usize,
    /// Hidden size of the MLP, in multiples of its width.
    pub expansion: usize,
    /// Heads of the attention; must divide `3 · channel`.
    pub heads: usize,
}

impl DyGFormerConfig {
    /// DyGLib's settings for UCI messages, with channels of `channel` numbers.
    pub fn new(channel: usize) -> Self {
        Self {
            channel,
            hidden: 3 * channel,
            time: 3 * channel,
            periods: [1.0, 1e9],
            length: 32,
            patch: 1,
            layers: 2,
            expansion: 4,
            heads: 2,
        }
    }
    /// Initializes the model for events with `features` features.
    ///
    /// # Errors
    /// `patch` does not divide `length`; `heads` does not divide `3 · channel`; a size of 0; periods that are
    /// not positive.
    pub fn init(&self, features: usize, device: &Device) -> Result<DyGFormer, ModelError> {
        let (c, patch, width) = (self.channel, self.patch, 3 * self.channel);
        for (arg, value) in [
            ("channel", c),
            ("hidden", self.hidden),
            ("length", self.length),
            ("expansion", self.expansion),
        ] {
            at_least_one(arg, value)?;
        }
        time_encoding(self.time, self.periods)?;
        divides("patch", patch, "length", self.length)?;
        divides("heads", self.heads, "3 · channel", width)?;
        let layer = |_| Transformer {
            norms: [0; 2].map(|_| LayerNormConfig::new(width).init(device)),
            attention: linear(width, 3 * width, true, device),
            output: linear(width, width, true, device),
            mlp: FeedForward::new(width, self.expansion * width, device),
            heads: self.heads,
        };
        Ok(DyGFormer {
            time: TimeEncoding::new(self.time, self.periods, false, device),
            counts: [linear(1, c, true, device), linear(c, c, true, device)],
            events: linear(patch * (features + 2), c, true, device),
            times: linear(patch * self.time, c, true, device),
            co_occurrence: linear(patch * c, c, true, device),
            layers: (0..self.layers).map(layer).collect(),
            output: linear(width, self.hidden, true, device),
            decoder: PairDecoder::new(self.hidden, device),
            length: self.length,
            patch,
            features,
        })
    }
}

/// DyGFormer (Yu et al., NeurIPS 2023): a transformer over the sequences of both nodes of a pair, with an encoding of how
/// often each neighbour occurs in either sequence.
///
/// The sequence of a node is the node itself, then its latest events, latest first; missing entries are zeros. `patch`
/// consecutive entries become one token of three channels:
///
/// * the features of events, which node is the source, and whether the entry is the node itself,
/// * the encoding of the time to the query,
/// * the sum of `f(a)` and `f(b)`, where `a` and `b` count the neighbour in the sequences of the source and the
///   destination, and `f` is an MLP.
///
/// The embedding of a node is the mean of its tokens after the layers.
#[derive(Module, Debug)]
pub struct DyGFormer {
    pub(crate) time: TimeEncoding,
    pub(crate) counts: [Linear; 2],
    pub(crate) events: Linear,
    pub(crate) times: Linear,
    pub(crate) co_occurrence: Linear,
    pub(crate) layers: Vec<Transformer>,
    pub(crate) output: Linear,
    pub(crate) decoder: PairDecoder,
    #[module(skip)]
    pub(crate) length: usize,
    #[module(skip)]
    pub(crate) patch: usize,
    #[module(skip)]
    features: usize,
}

/// Self-attention and an MLP, each with a residual and a norm before it.
#[derive(Module, Debug)]
pub(crate) struct Transformer {
    pub(crate) norms: [LayerNorm; 2],
    pub(crate) attention: Linear,
    pub(crate) output: Linear,
    pub(crate) mlp: FeedForward,
    #[module(skip)]
    pub(crate) heads: usize,
}

impl Transformer {
    /// `x`: `[n · tokens, width]`.
    fn forward(
        &self,
        x: Tensor<2>,
        n: usize,
        dropout: Option<&StepDropout>,
        layer: usize,
    ) -> Tensor<2> {
        let [rows, width] = x.dims();
        let (tokens, h, size) = (rows / n.max(1), self.heads, width / self.heads);
        let qkv = affine(&self.attention, self.norms[0].forward(x.clone()));
        let qkv = qkv.reshape([n, tokens, 3 * h, size]).swap_dims(1, 2);
        let part = |i: usize| qkv.clone().slice_dim(1, i * h..(i + 1) * h);
        let scores = part(0).matmul(part(1).swap_dims(2, 3)) / (size as f64).sqrt();
        let mixed = softmax(scores, 3).matmul(part(2));
        let mixed = mixed.swap_dims(1, 2).reshape([rows, width]);
        let name = format!("attention {layer}");
        let x = x + drop_entries(affine(&self.output, mixed), dropout, &name);
        let hidden = self.norms[1].forward(x.clone());
        x + self.mlp.forward(hidden, dropout, &format!("mlp {layer}"))
    }
}

/// The sequences of all pairs, for the source or the destination.
struct Sequences {
    /// Number of the node among the distinct nodes, per pair.
    rows: Vec<u32>,
    /// Counts of the neighbour of each entry in the sequence of the source and in that of the destination.
    counts: [Vec<u32>; 2],
}

impl HistoryModel for DyGFormer {
    fn score(
        &self,
        history: &EventHistory,
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError> {
        same_features(history.events(), self.features)?;
        let DistinctNodes { at, src, dst } = queries.distinct_nodes();
        let (nodes, times) = (at.nodes, at.times);
        // Rows are pairs, not nodes.
        let dropout = dropout.map(|d| d.of_rows(queries.scored.as_deref()));
        let (n, length, pairs) = (nodes.len(), self.length, queries.len());
        let device = self.time.frequencies.val().device().without_autodiff();
        let recent = history.latest(&nodes, &times, length - 1);

        // Sequences of distinct nodes: entry 0 is the node itself.
        let shifted = |p: usize| p / (length - 1).max(1) * length + p % (length - 1).max(1) + 1;
        let positions: Vec<usize> = recent.padded_positions().into_iter().map(shifted).collect();
        let own: Vec<usize> = (0..n).map(|i| i * length).collect();
        let at: Vec<usize> = positions.iter().chain(&own).copied().collect();
        let events = event_features(history.events(), &recent, &device);
        let size = events.dims()[1];
        let is_node: Vec<f32> =
            std::iter::repeat_n(0.0, positions.len()).chain(std::iter::repeat_n(1.0, n)).collect();
        let events = Tensor::cat(vec![events, Tensor::zeros([n, size], &device)], 0);
        let events = cat_features(vec![matrix(is_node, 1, &device), events]);
        let dt: Vec<i64> = recent.dt.iter().copied().chain(std::iter::repeat_n(0, n)).collect();
        let patches = n * length / self.patch;
        let padded = |x: Tensor<2>| {
            let cols = x.dims()[1];
            scatter_rows(x, &at, n * length).reshape([patches, self.patch * cols])
        };
        // Channels that do not depend on the other node of the pair are computed once per node.
        let of_nodes = cat_features(vec![
            affine(&self.events, padded(events)),
            affine(&self.times, padded(self.time.forward(&dt))),
        ]);

        // Neighbours of all entries; `NONE` where there is none.
        let mut ids = vec![NONE; n * length];
        own.iter().zip(&nodes).for_each(|(&at, &v)| ids[at] = v);
        positions.iter().zip(&recent.neighbors).for_each(|(&at, &v)| ids[at] = v);
        let row = |i: u32| &ids[i as usize * length..(i as usize + 1) * length];
        let (mut of_src, mut of_dst) = (Sequences::new(&src, length), Sequences::new(&dst, length));
        for (&u, &v) in src.iter().zip(&dst) {
            of_src.push(row(u), [row(u), row(v)]);
            of_dst.push(row(v), [row(u), row(v)]);
        }

        let tokens = length / self.patch;
        let numbers = (0..=length).map(|i| i as f32).collect();
        let encoded = affine(
            &self.counts[1],
            apply(&self.counts[0], matrix(numbers, 1, &device), Activation::Relu),
        );
        // A missing entry has the encoding 0, not that of the count 0.
        let encoded = Tensor::cat(vec![encoded.clone(), encoded.slice_dim(0, 0..1) * 0.0], 0);
        let part = |of: Sequences| {
            let [a, b] = of.counts;
            let counts = select_rows(encoded.clone(), a) + select_rows(encoded.clone(), b);
            let c = counts.dims()[1];
            let counts = counts.reshape([pairs * tokens, self.patch * c]);
            let of_row =
                |&i: &u32| (i as usize * tokens..(i as usize + 1) * tokens).map(|t| t as u32);
            let rows: Vec<u32> = of.rows.iter().flat_map(of_row).collect();
            let x = cat_features(vec![
                select_rows(of_nodes.clone(), rows),
                affine(&self.co_occurrence, counts),
            ]);
            let width = x.dims()[1];
            x.reshape([pairs, tokens, width])
        };
        let x = Tensor::cat(vec![part(of_src), part(of_dst)], 1);
        let [_, all, width] = x.dims();
        let x = x.reshape([pairs * all, width]);
        let dropout = dropout.map(|d| d.split_rows(all));
        let x = self
            .layers
            .iter()
            .enumerate()
            .fold(x, |x, (i, layer)| layer.forward(x, pairs, dropout.as_ref(), i));
        let x = x.reshape([2 * pairs, tokens, width]).mean_dim(1).reshape([pairs, 2 * width]);
        let z = |i: usize| affine(&self.output, x.clone().slice_dim(1, i * width..(i + 1) * width));
        Ok(self.decoder.forward(z(0), z(1)))
    }
}

/// Marks entries of a sequence without a neighbour.
const NONE: u32 = u32::MAX;

impl Sequences {
    fn new(rows: &[u32], length: usize) -> Self {
        let counts = || Vec::with_capacity(rows.len() * length);
        Self { rows: rows.to_vec(), counts: [counts(), counts()] }
    }
    /// Counts the neighbours of a sequence in both sequences of the pair.
    fn push(&mut self, of: &[u32], sequences: [&[u32]; 2]) {
        let missing = of.len() as u32 + 1;
        for (counts, sequence) in self.counts.iter_mut().zip(sequences) {
            let count = |v: &u32| match *v {
                NONE => missing,
                v => sequence.iter().filter(|&&u| u == v).count() as u32,
            };
            counts.extend(of.iter().map(count));
        }
    }
}
