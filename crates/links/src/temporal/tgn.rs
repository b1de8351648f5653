//! Defines `Tgn` and `Tgat`: attention over the latest events, with and without a memory of nodes.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_models::{ModelError, select_rows};

use super::checks::{at_least_one, divides, same_features, time_encoding};
use super::history::{DistinctNodes, EventHistory, LinkQueries, NodesAtTimes, RecentEvents};
use super::layers::{
    PairDecoder, StepDropout, TemporalAttention, TimeEncoding, drop_entries, event_features,
};
use super::memory::{
    MemoryState, MessageAggregation, TgnMemory, TgnMemoryConfig, UpdaterKind, number_nodes,
};
use super::model::{EventModel, HistoryModel};

/// Settings of [`Tgn`].
#[derive(Clone, Debug)]
pub struct TgnConfig {
    /// Size of the memory and of embeddings.
    pub hidden: usize,
    /// Size of time encodings.
    pub time: usize,
    /// Shortest and longest period of time encodings.
    pub periods: [f64; 2],
    /// Number of latest events per node.
    pub neighbors: usize,
    /// Heads of the attention; must divide `hidden + time`.
    pub heads: usize,
    /// How messages of one batch are aggregated.
    pub aggregation: MessageAggregation,
    /// How messages update the memory.
    pub updater: UpdaterKind,
}

impl TgnConfig {
    /// DyGLib's settings for UCI messages, with smaller sizes.
    pub fn new(hidden: usize) -> Self {
        Self {
            hidden,
            time: hidden,
            periods: [1.0, 1e9],
            neighbors: 10,
            heads: 2,
            aggregation: MessageAggregation::Last,
            updater: UpdaterKind::Gru,
        }
    }
    /// Initializes the model for events with `features` features.
    ///
    /// # Errors
    /// `heads` does not divide `hidden + time`; a size of 0; periods that are not positive.
    pub fn init(&self, features: usize, device: &Device) -> Result<Tgn, ModelError> {
        check([self.hidden, self.time, self.heads, self.neighbors], self.periods)?;
        let memory = TgnMemoryConfig {
            periods: self.periods,
            aggregation: self.aggregation,
            updater: self.updater,
            ..TgnMemoryConfig::new(self.hidden, self.time, features)
        };
        Ok(Tgn {
            memory: memory.init(device),
            time: TimeEncoding::new(self.time, self.periods, false, device),
            attention: TemporalAttention::new(
                self.hidden,
                features + 1,
                self.time,
                self.heads,
                device,
            ),
            decoder: PairDecoder::new(self.hidden, device),
            neighbors: self.neighbors,
        })
    }
}

/// Temporal graph network (Rossi et al., 2020): a memory per node, attention over the memories of the other nodes of the
/// latest events, and a decoder of pairs.
///
/// The memory contains events of earlier batches. The latest events of a node are those strictly before the time of the
/// query, also in the same batch, as in DyGLib.
#[derive(Module, Debug)]
pub struct Tgn {
    /// Memory.
    pub memory: TgnMemory,
    pub(crate) time: TimeEncoding,
    pub(crate) attention: TemporalAttention,
    pub(crate) decoder: PairDecoder,
    #[module(skip)]
    pub(crate) neighbors: usize,
}

impl EventModel for Tgn {
    type State = MemoryState;

    fn new_state(&self, history: &EventHistory) -> MemoryState {
        self.memory.new_state(history.events().num_nodes())
    }

    fn logits(
        &self,
        history: &EventHistory,
        state: &MemoryState,
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError> {
        let DistinctNodes { at, src, dst } = queries.distinct_nodes();
        let dropout = dropout.map(|d| d.of_rows(at.rows()));
        let (dropout, nodes) = (dropout.as_ref(), at.nodes);
        let recent = history.latest(&nodes, &at.times, self.neighbors);
        let all = nodes.iter().chain(&recent.neighbors).copied();
        let (distinct, numbers) = number_nodes(all);
        let memory = self.memory.read(history.events(), state, &distinct)?.memory;
        let of = |nodes: &[u32]| -> Vec<u32> { nodes.iter().map(|v| numbers[v]).collect() };
        let own = select_rows(memory.clone(), of(&nodes));
        let neighbors = select_rows(memory, of(&recent.neighbors));
        let device = own.device();
        let z = self.attention.forward(
            &recent,
            own,
            self.time.forward(&[0]),
            [
                neighbors,
                event_features(history.events(), &recent, &device),
                self.time.forward(&recent.dt),
            ],
            dropout,
            "attention",
        );
        Ok(self.decoder.of_rows(drop_entries(z, dropout, "embedding"), &src, &dst))
    }

    fn advance(
        &self,
        history: &EventHistory,
        state: &mut MemoryState,
        events: Range<usize>,
    ) -> Result<(), ModelError> {
        self.memory.update(history.events(), state, events)
    }
}

/// Settings of [`Tgat`].
#[derive(Clone, Debug)]
pub struct TgatConfig {
    /// Size of embeddings.
    pub hidden: usize,
    /// Size of time encodings.
    pub time: usize,
    /// Shortest and longest period of time encodings.
    pub periods: [f64; 2],
    /// Number of latest events per node, in each layer.
    pub neighbors: usize,
    /// Number of layers.
    pub layers: usize,
    /// Heads of the attention; must divide `hidden + time`.
    pub heads: usize,
}

impl TgatConfig {
    /// DyGLib's settings for UCI messages, with smaller sizes.
    pub fn new(hidden: usize) -> Self {
        Self { hidden, time: hidden, periods: [1.0, 1e9], neighbors: 20, layers: 2, heads: 2 }
    }
    /// Initializes the model for events with `features` features.
    ///
    /// # Errors
    /// `heads` does not divide `hidden + time`; a size of 0; periods that are not positive.
    pub fn init(&self, features: usize, device: &Device) -> Result<Tgat, ModelError> {
        check([self.hidden, self.time, self.heads, self.neighbors], self.periods)?;
        let layer =
            |_| TemporalAttention::new(self.hidden, features + 1, self.time, self.heads, device);
        Ok(Tgat {
            time: TimeEncoding::new(self.time, self.periods, false, device),
            layers: (0..self.layers).map(layer).collect(),
            decoder: PairDecoder::new(self.hidden, device),
            neighbors: self.neighbors,
            hidden: self.hidden,
            features,
        })
    }
}

/// Temporal graph attention (Xu et al., ICLR 2020): layers of attention over the latest events of a node, each read at its
/// own time. Nodes have no features of their own: the input of the first layer is 0.
#[derive(Module, Debug)]
pub struct Tgat {
    pub(crate) time: TimeEncoding,
    pub(crate) layers: Vec<TemporalAttention>,
    pub(crate) decoder: PairDecoder,
    #[module(skip)]
    pub(crate) neighbors: usize,
    #[module(skip)]
    pub(crate) hidden: usize,
    #[module(skip)]
    features: usize,
}

impl Tgat {
    /// Embeddings of nodes at times after the first `depth` layers.
    fn embed(
        &self,
        history: &EventHistory,
        at: &NodesAtTimes,
        depth: usize,
        dropout: Option<&StepDropout>,
    ) -> Tensor<2> {
        let device = self.time.frequencies.val().device().without_autodiff();
        let Some(layer) = depth.checked_sub(1).and_then(|i| self.layers.get(i)) else {
            return Tensor::zeros([at.nodes.len(), self.hidden], &device);
        };
        let latest = |at: &NodesAtTimes| history.latest(&at.nodes, &at.times, self.neighbors);
        let recent = latest(at);
        // The nodes themselves and the other nodes of their events, each once per time.
        let [own, neighbors] = if depth == 1 {
            [at.nodes.len(), recent.events.len()].map(|n| Tensor::zeros([n, self.hidden], &device))
        } else {
            let below = |at: &NodesAtTimes, recent: &RecentEvents| {
                let time = |&e: &u32| history.events().time()[e as usize];
                let pairs = LinkQueries {
                    src: [&at.nodes[..], &recent.neighbors].concat(),
                    time: at.times.iter().copied().chain(recent.events.iter().map(time)).collect(),
                    ..LinkQueries::default()
                };
                let DistinctNodes { at: distinct, src, .. } = pairs.distinct_nodes();
                let (first, second) = src.split_at(at.nodes.len());
                (distinct, first.to_vec(), second.to_vec())
            };
            // A part of a batch reads the part of the layer below that its rows need.
            let (distinct, first, second) = match &at.part {
                None => below(at, &recent),
                Some((rows, all)) => {
                    let of_all = latest(all);
                    let (distinct, first, second) = below(all, &of_all);
                    let mut own: Vec<u32> = rows.iter().map(|&row| first[row as usize]).collect();
                    let entries = |&row: &u32| {
                        second[of_all.offsets[row as usize]..of_all.offsets[row as usize + 1]]
                            .iter()
                    };
                    let mut others: Vec<u32> = rows.iter().flat_map(entries).copied().collect();
                    let distinct = distinct.part([&own[..], &others[..]].concat());
                    distinct.renumber(&mut own);
                    distinct.renumber(&mut others);
                    (distinct, own, others)
                }
            };
            let x = self.embed(history, &distinct, depth - 1, dropout);
            [select_rows(x.clone(), first), select_rows(x, second)]
        };
        let parts = [
            neighbors,
            event_features(history.events(), &recent, &device),
            self.time.forward(&recent.dt),
        ];
        let (name, dropout) = (format!("attention {depth}"), dropout.map(|d| d.of_rows(at.rows())));
        layer.forward(&recent, own, self.time.forward(&[0]), parts, dropout.as_ref(), &name)
    }
}

impl HistoryModel for Tgat {
    fn score(
        &self,
        history: &EventHistory,
        queries: &LinkQueries,
        dropout: Option<&StepDropout>,
    ) -> Result<Tensor<1>, ModelError> {
        same_features(history.events(), self.features)?;
        let DistinctNodes { at, src, dst } = queries.distinct_nodes();
        let z = self.embed(history, &at, self.layers.len(), dropout);
        Ok(self.decoder.of_rows(z, &src, &dst))
    }
}

/// Checks the settings that the models share.
fn check(
    [hidden, time, heads, neighbors]: [usize; 4],
    periods: [f64; 2],
) -> Result<(), ModelError> {
    at_least_one("hidden", hidden)?;
    time_encoding(time, periods)?;
    at_least_one("neighbors", neighbors)?;
    divides("heads", heads, "hidden + time", hidden + time)
}
