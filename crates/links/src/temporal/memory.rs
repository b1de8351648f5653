//! Defines `TgnMemory`: a vector per node that is updated by messages of its events.

use std::collections::HashMap;
use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use burn_gnn_data::EventStream;
use burn_gnn_models::{ModelError, select_rows};
use burn_gnn_ops::{SegmentReduce, Segments, cat_features, segment_reduce};

use super::checks::same_features;
use super::layers::{GruCell, RnnCell, TimeEncoding, matrix};

/// How several messages of a node in one batch become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageAggregation {
    /// The message of the latest event; of events of one time that of the last one in the stream.
    #[default]
    Last,
    /// The mean of all messages.
    Mean,
}

/// How a message updates the memory of a node.
#[derive(Module, Debug)]
pub enum MemoryUpdater {
    /// A gated recurrent unit (TGN).
    Gru(GruCell),
    /// A plain recurrent unit (JODIE).
    Rnn(RnnCell),
}

/// Kind of a [`MemoryUpdater`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdaterKind {
    /// A gated recurrent unit.
    #[default]
    Gru,
    /// A plain recurrent unit.
    Rnn,
}

/// Settings of [`TgnMemory`].
#[derive(Clone, Debug)]
pub struct TgnMemoryConfig {
    /// Size of the memory of a node.
    pub memory: usize,
    /// Size of the time encoding.
    pub time: usize,
    /// Number of features of an event.
    pub features: usize,
    /// Shortest and longest period of the time encoding.
    pub periods: [f64; 2],
    /// How messages are aggregated.
    pub aggregation: MessageAggregation,
    /// How messages update the memory.
    pub updater: UpdaterKind,
    /// Whether a node without messages is updated by a message of zeros when it is read, as PyTorch Geometric's
    /// `TGNMemory` does in training. Otherwise it keeps its memory.
    pub update_without_messages: bool,
}

impl TgnMemoryConfig {
    /// A memory of `memory` numbers per node, for events of `features` features.
    pub fn new(memory: usize, time: usize, features: usize) -> Self {
        Self {
            memory,
            time,
            features,
            periods: [1.0, 1e9],
            aggregation: MessageAggregation::Last,
            updater: UpdaterKind::Gru,
            update_without_messages: false,
        }
    }
    /// Initializes the parameters. `memory` and `time` must be at least 1, and the periods positive.
    pub fn init(&self, device: &Device) -> TgnMemory {
        let message = 2 * self.memory + self.features + self.time;
        TgnMemory {
            time: TimeEncoding::new(self.time, self.periods, true, device),
            updater: match self.updater {
                UpdaterKind::Gru => MemoryUpdater::Gru(GruCell::new(message, self.memory, device)),
                UpdaterKind::Rnn => MemoryUpdater::Rnn(RnnCell::new(message, self.memory, device)),
            },
            memory: self.memory,
            mean: self.aggregation == MessageAggregation::Mean,
            update_without_messages: self.update_without_messages,
        }
    }
}

/// Memory of temporal graph networks (Rossi et al., 2020): each node has a vector, which messages of its events update.
///
/// ```text
/// m[v] = [memory[v], memory[u], features of e, φ(t - last[v])]      for an event e between v and u at time t
/// memory[v] = updater(aggregate of the messages of v, memory[v]);   last[v] = largest t
/// ```
///
/// # Batches
/// [`update`](Self::update) stores the events of a batch at their nodes and computes nothing else with them: messages are
/// computed when a later batch reads or stores events of the node, so that gradients reach the updater (Rossi et al.,
/// section 3.2). What is read for a batch is therefore a function of events of earlier batches.
///
/// The state ([`MemoryState`]) is separate from the parameters, on the host. An update touches the nodes of the batch
/// only.
#[derive(Module, Debug)]
pub struct TgnMemory {
    /// Time encoding.
    pub time: TimeEncoding,
    /// Updater.
    pub updater: MemoryUpdater,
    #[module(skip)]
    memory: usize,
    #[module(skip)]
    mean: bool,
    #[module(skip)]
    update_without_messages: bool,
}

/// The memory of all nodes, and the events of which messages have not been computed.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryState {
    size: usize,
    memory: Vec<f32>,
    last_update: Vec<i64>,
    /// Events of the last batch of each node that are not in its memory, in ascending order.
    pending: Vec<Vec<u32>>,
}

impl MemoryState {
    /// Memory of a node.
    ///
    /// # Panics
    /// Unknown node.
    #[track_caller]
    pub fn memory(&self, node: u32) -> &[f32] {
        &self.memory[node as usize * self.size..(node as usize + 1) * self.size]
    }
    /// Time of the last event in the memory of a node; 0 before the first one.
    ///
    /// # Panics
    /// Unknown node.
    #[track_caller]
    pub fn last_update(&self, node: u32) -> i64 {
        self.last_update[node as usize]
    }
    /// Events of a node that are not yet in its memory.
    ///
    /// # Panics
    /// Unknown node.
    #[track_caller]
    pub fn pending(&self, node: u32) -> &[u32] {
        &self.pending[node as usize]
    }
    /// Memories of nodes, one row per entry of `nodes`.
    fn rows(&self, nodes: &[u32], device: &Device) -> Tensor<2> {
        let mut values = Vec::with_capacity(nodes.len() * self.size);
        nodes.iter().for_each(|&v| values.extend_from_slice(self.memory(v)));
        matrix(values, self.size, &device.clone().without_autodiff())
    }
}

/// Memories that [`TgnMemory::read`] computed.
#[derive(Clone, Debug)]
pub struct NodeMemories {
    /// One row per node.
    pub memory: Tensor<2>,
    /// Time of the last event in each row.
    pub last_update: Vec<i64>,
}

impl TgnMemory {
    /// The state before the first event: zeros.
    pub fn new_state(&self, num_nodes: usize) -> MemoryState {
        MemoryState {
            size: self.memory,
            memory: vec![0.0; num_nodes * self.memory],
            last_update: vec![0; num_nodes],
            pending: vec![vec![]; num_nodes],
        }
    }

    /// Memories of distinct nodes, updated by their pending messages. The state does not change.
    ///
    /// # Errors
    /// Events with another number of features than the memory was made for.
    ///
    /// # Panics
    /// A node that the state does not have.
    #[track_caller]
    pub fn read(
        &self,
        events: &EventStream,
        state: &MemoryState,
        nodes: &[u32],
    ) -> Result<NodeMemories, ModelError> {
        same_features(events, self.features())?;
        let device = self.time.frequencies.val().device();
        let has_message = |v: &u32| !state.pending(*v).is_empty();
        let (updated, kept): (Vec<u32>, Vec<u32>) = if self.update_without_messages {
            (nodes.to_vec(), vec![])
        } else {
            nodes.iter().partition(|v| has_message(v))
        };
        let mut parts = vec![];
        if !updated.is_empty() {
            let messages = self.messages(events, state, &updated, &device)?;
            let before = state.rows(&updated, &device);
            parts.push(match &self.updater {
                MemoryUpdater::Gru(cell) => cell.forward(messages, before),
                MemoryUpdater::Rnn(cell) => cell.forward(messages, before),
            });
        }
        if !kept.is_empty() {
            parts.push(state.rows(&kept, &device));
        }
        let memory = match parts.len() {
            0 => Tensor::zeros([0, self.memory], &device),
            1 => parts.remove(0),
            _ => Tensor::cat(parts, 0),
        };
        // Rows in the order of `nodes`.
        let memory = if kept.is_empty() || updated.is_empty() {
            memory
        } else {
            let (mut first, mut second) = (0..updated.len() as u32, updated.len() as u32..);
            let row = |v: &u32| if has_message(v) { first.next() } else { second.next() };
            let rows: Vec<u32> = nodes.iter().filter_map(row).collect();
            select_rows(memory, rows)
        };
        let last = |&v: &u32| match state.pending(v).last() {
            Some(&e) => events.time()[e as usize],
            None if self.update_without_messages => 0,
            None => state.last_update(v),
        };
        Ok(NodeMemories { memory, last_update: nodes.iter().map(last).collect() })
    }

    /// Aggregated messages of nodes, `[nodes, message]`; zeros for a node without pending events.
    fn messages(
        &self,
        events: &EventStream,
        state: &MemoryState,
        nodes: &[u32],
        device: &Device,
    ) -> Result<Tensor<2>, ModelError> {
        let (mut of, mut other, mut dt, mut features) = (vec![], vec![], vec![], vec![]);
        let mut lengths = Vec::with_capacity(nodes.len());
        for &v in nodes {
            let pending = state.pending(v);
            let read =
                if self.mean { pending } else { &pending[pending.len().saturating_sub(1)..] };
            let before = of.len();
            for &e in read {
                let e = e as usize;
                let (u, w) = (events.src()[e], events.dst()[e]);
                // A node that sends to itself gets a message in each role, as its event is stored for both.
                let roles = if u == w { 2 } else { 1 };
                for _ in 0..if self.mean { roles } else { 1 } {
                    of.push(v);
                    other.push(if u == v { w } else { u });
                    dt.push(events.time()[e].saturating_sub(state.last_update(v)));
                    features.extend_from_slice(events.features_of(e));
                }
            }
            lengths.push(of.len() - before);
        }
        let features = matrix(features, events.feature_size(), &device.clone().without_autodiff());
        let mut parts = vec![state.rows(&of, device), state.rows(&other, device)];
        if events.feature_size() > 0 {
            parts.push(features);
        }
        parts.push(self.time.forward(&dt));
        let messages = cat_features(parts);
        if lengths.iter().all(|&n| n == 1) {
            return Ok(messages);
        }
        Ok(segment_reduce(messages, &Segments::from_lengths(&lengths), SegmentReduce::Mean))
    }

    /// Number of features of an event.
    fn features(&self) -> usize {
        let cell_input = match &self.updater {
            MemoryUpdater::Gru(cell) => &cell.input,
            MemoryUpdater::Rnn(cell) => &cell.input,
        };
        cell_input.weight.dims()[0] - 2 * self.memory - self.time.size()
    }

    /// Adds a batch of events to the state: writes the pending messages of its nodes to their memory, then stores the
    /// events at both of their nodes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Panics
    /// The range is not within the stream, or the state has fewer nodes.
    #[track_caller]
    pub fn update(
        &self,
        events: &EventStream,
        state: &mut MemoryState,
        batch: Range<usize>,
    ) -> Result<(), ModelError> {
        same_features(events, self.features())?;
        let (src, dst) = (&events.src()[batch.clone()], &events.dst()[batch.clone()]);
        self.write_pending(events, state, &endpoints(events, batch.clone()))?;
        for (e, (&u, &v)) in batch.zip(src.iter().zip(dst)) {
            state.pending[u as usize].push(e as u32);
            if u != v {
                state.pending[v as usize].push(e as u32);
            }
        }
        Ok(())
    }

    /// As [`update`](Self::update), but writes the messages of the batch to the memory at once, as PyTorch Geometric does
    /// for evaluation. Messages are then computed from memories before the batch.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Panics
    /// As [`update`](Self::update).
    #[track_caller]
    pub fn update_at_once(
        &self,
        events: &EventStream,
        state: &mut MemoryState,
        batch: Range<usize>,
    ) -> Result<(), ModelError> {
        self.update(events, state, batch.clone())?;
        self.write_pending(events, state, &endpoints(events, batch))
    }

    /// Writes pending messages of nodes to their memory.
    fn write_pending(
        &self,
        events: &EventStream,
        state: &mut MemoryState,
        nodes: &[u32],
    ) -> Result<(), ModelError> {
        let nodes: Vec<u32> = match self.update_without_messages {
            true => nodes.to_vec(),
            false => nodes.iter().copied().filter(|&v| !state.pending(v).is_empty()).collect(),
        };
        if nodes.is_empty() {
            return Ok(());
        }
        let NodeMemories { memory, last_update } = self.valid().read(events, state, &nodes)?;
        let values: Vec<f32> = memory.into_data().iter::<f32>().collect();
        for ((&v, row), last) in
            nodes.iter().zip(values.chunks(self.memory.max(1))).zip(last_update)
        {
            let v = v as usize;
            state.memory[v * self.memory..(v + 1) * self.memory].copy_from_slice(row);
            state.last_update[v] = last;
            state.pending[v].clear();
        }
        Ok(())
    }
}

/// Sources and destinations of events in ascending order, each once.
fn endpoints(events: &EventStream, batch: Range<usize>) -> Vec<u32> {
    let mut nodes = [&events.src()[batch.clone()], &events.dst()[batch]].concat();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Numbers distinct nodes in the order of their first occurrence.
pub(crate) fn number_nodes(nodes: impl IntoIterator<Item = u32>) -> (Vec<u32>, HashMap<u32, u32>) {
    let (mut distinct, mut numbers) = (vec![], HashMap::new());
    for v in nodes {
        numbers.entry(v).or_insert_with(|| {
            distinct.push(v);
            distinct.len() as u32 - 1
        });
    }
    (distinct, numbers)
}
