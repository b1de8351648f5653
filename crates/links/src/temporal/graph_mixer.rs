//! Defines `GraphMixer`: an MLP-Mixer over the latest events of a node.

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear};
use burn::tensor::{Device, Tensor};
use burn_gnn_models::{ModelError, select_rows};
use burn_gnn_ops::cat_features;

use super::checks::{at_least_one, same_features, time_encoding};
use super::history::{DistinctNodes, EventHistory, LinkQueries};
use super::layers::{
    FeedForward, PairDecoder, StepDropout, TimeEncoding, affine, event_features, linear,
};
use super::model::HistoryModel;

/// Settings of [`GraphMixer`].
#[derive(Clone, Debug)]
pub struct GraphMixerConfig {
    /// Number of channels of an event, and size of embeddings.
    pub hidden: usize,
    /// Size of time encodings.
    pub time: usize,
    /// Shortest and longest period of time encodings.
    pub periods: [f64; 2],
    /// Number of latest events per node.
    pub neighbors: usize,
    /// Number of mixer layers.
    pub layers: usize,
    /// Hidden size of the MLP over channels, in multiples of `hidden`.
    pub expansion: usize,
}

impl GraphMixerConfig {
    /// DyGLib's settings for UCI messages, with a smaller size.
    pub fn new(hidden: usize) -> Self {
        Self { hidden, time: hidden, periods: [1.0, 1e9], neighbors: 20, layers: 2, expansion: 4 }
    }
    /// Initializes the model for events with `features` features.
    ///
    /// # Errors
    /// A size of 0; periods that are not positive.
    pub fn init(&self, features: usize, device: &Device) -> Result<GraphMixer, ModelError> {
        at_least_one("hidden", self.hidden)?;
        time_encoding(self.time, self.periods)?;
        at_least_one("neighbors", self.neighbors)?;
        at_least_one("expansion", self.expansion)?;
        let (k, hidden) = (self.neighbors, self.hidden);
        let layer = |_| Mixer {
            token_norm: LayerNormConfig::new(k).init(device),
            tokens: FeedForward::new(k, (k / 2).max(1), device),
            channel_norm: LayerNormConfig::new(hidden).init(device),
            channels: FeedForward::new(hidden, self.expansion * hidden, device),
        };
        Ok(GraphMixer {
            time: TimeEncoding::new(self.time, self.periods, false, device),
            input: linear(features + 1 + self.time, hidden, true, device),
            layers: (0..self.layers).map(layer).collect(),
            output: linear(hidden, hidden, true, device),
            decoder: PairDecoder::new(hidden, device),
            neighbors: k,
            features,
        })
    }
}

/// GraphMixer (Cong et al., ICLR 2023): the latest events of a node, with fixed time encodings, mixed by MLPs over events
/// and over channels, and averaged.
///
/// Missing events of a node are rows of zeros before the input layer. Nodes have no features, so that the node encoder of
/// the paper, a mean of the features of recent neighbours, is absent.
#[derive(Module, Debug)]
pub struct GraphMixer {
    pub(crate) time: TimeEncoding,
    pub(crate) input: Linear,
    pub(crate) layers: Vec<Mixer>,
    pub(crate) output: Linear,
    pub(crate) decoder: PairDecoder,
    #[module(skip)]
    pub(crate) neighbors: usize,
    #[module(skip)]
    features: usize,
}

#[derive(Module, Debug)]
pub(crate) struct Mixer {
    pub(crate) token_norm: LayerNorm,
    pub(crate) tokens: FeedForward,
    pub(crate) channel_norm: LayerNorm,
    pub(crate) channels: FeedForward,
}

impl Mixer {
    /// `x`: `[n, k, channels]`.
    fn forward(&self, x: Tensor<3>, dropout: Option<&StepDropout>, layer: usize) -> Tensor<3> {
        let [n, k, c] = x.dims();
        let by_channel = x.clone().swap_dims(1, 2).reshape([n * c, k]);
        let mixed = self.tokens.forward(
            self.token_norm.forward(by_channel),
            dropout.map(|d| d.split_rows(c)).as_ref(),
            &format!("tokens {layer}"),
        );
        let x = (x + mixed.reshape([n, c, k]).swap_dims(1, 2)).reshape([n * k, c]);
        let mixed = self.channels.forward(
            self.channel_norm.forward(x.clone()),
            dropout.map(|d| d.split_rows(k)).as_ref(),
            &format!("channels {layer}"),
        );
        (x + mixed).reshape([n, k, c])
    }
}

impl HistoryModel for GraphMixer {
    fn score(
        &self,
        history: &EventHistory,
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError> {
        same_features(history.events(), self.features)?;
        let DistinctNodes { at, src, dst } = queries.distinct_nodes();
        let dropout = dropout.map(|d| d.of_rows(at.rows()));
        let (n, k) = (at.nodes.len(), self.neighbors);
        let recent = history.latest(&at.nodes, &at.times, k);
        let device = self.time.frequencies.val().device().without_autodiff();
        let features = event_features(history.events(), &recent, &device);
        let encoded = cat_features(vec![features, self.time.forward(&recent.dt)]);
        let rows = scatter_rows(encoded, &recent.padded_positions(), n * k);
        let x = affine(&self.input, rows);
        let channels = x.dims()[1];
        let x = x.reshape([n, k, channels]);
        let dropout = dropout.as_ref();
        let x =
            self.layers.iter().enumerate().fold(x, |x, (i, layer)| layer.forward(x, dropout, i));
        let z = affine(&self.output, x.mean_dim(1).reshape([n, channels]));
        Ok(self.decoder.of_rows(z, &src, &dst))
    }
}

/// Writes rows to the given positions of a matrix of `rows` rows; the others are 0.
pub(crate) fn scatter_rows(x: Tensor<2>, positions: &[usize], rows: usize) -> Tensor<2> {
    let ([entries, cols], device) = (x.dims(), x.device());
    // The last row, of zeros, is selected where no row is written.
    let mut from = vec![entries; rows];
    positions.iter().enumerate().for_each(|(entry, &at)| from[at] = entry);
    let zero = Tensor::zeros([1, cols], &device);
    let x = if entries == 0 { zero } else { Tensor::cat(vec![x, zero], 0) };
    select_rows(x, from)
}
