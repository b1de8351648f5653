//! Converts a stream of events to a graph whose edges have times.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, GraphError};
use burn_gnn_sampling::{Fanouts, MiniBatch, NeighborSampler};

use super::event_stream::EventStream;

/// Edge type of the events.
const EVENT: &str = "event";
/// Edge type of the reversed events.
const REVERSED: &str = "rev_event";
/// The node type.
const NODE: &str = "node";

/// A stream of events as a graph whose edges have times, which [`EventStream::to_graph`] makes.
///
/// It has the node type `node` and the edge type `event`; with `both_directions` also the edge type `rev_event`, so that a
/// node receives messages along the events of which it is the source. Edge `i` of either type is event `i`.
///
/// ```
/// use burn_gnn_data::EventStream;
/// use burn_gnn_sampling::{SampleKey, Strategy};
/// let mail = EventStream::new(3, vec![0, 1, 1], vec![2, 2, 2], vec![10, 20, 30])?;
/// let graph = mail.to_graph(false)?;
/// let sampler = graph.sampler([1])?.with_strategy(Strategy::Latest)?;
/// let batch = sampler.sample_before([("node", [2], [30])], SampleKey::new(0))?;
/// assert_eq!(batch.blocks[0].edge_ids("event"), [1]); // the latest event strictly before 30
/// assert_eq!(graph.dt(&batch, &[30])?, [[vec![10]]]); // by block and edge type
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventGraph {
    graph: Graph,
    times: Arc<[i64]>,
}

impl EventStream {
    /// The graph of the events; see [`EventGraph`].
    ///
    /// # Errors
    /// As for [`Graph`] construction.
    ///
    /// # Cost
    /// 8 bytes per event and edge type for endpoints, 8 per event for times.
    pub fn to_graph(&self, both_directions: bool) -> Result<EventGraph, DataError> {
        let mut builder = Graph::builder().nodes(NODE, self.num_nodes()).edges(
            EdgeType::new(NODE, EVENT, NODE),
            self.src().to_vec(),
            self.dst().to_vec(),
        );
        if both_directions {
            let etype = EdgeType::new(NODE, REVERSED, NODE);
            builder = builder.edges(etype, self.dst().to_vec(), self.src().to_vec());
        }
        Ok(EventGraph { graph: builder.build()?, times: self.time().into() })
    }

    /// A graph per window of time, with the events of the window, for models of sequences of graphs. The windows are those
    /// of [`windows`](Self::windows).
    ///
    /// # Errors
    /// As [`windows`](Self::windows) and [`to_graph`](Self::to_graph).
    pub fn snapshots(&self, start: i64, length: i64) -> Result<Vec<EventGraph>, DataError> {
        let graph = |(_, events): (i64, Range<usize>)| self.slice(events).to_graph(false);
        self.windows(start, length)?.map(graph).collect()
    }
}

impl EventGraph {
    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Time of each edge, which is the same for both edge types.
    pub fn times(&self) -> &Arc<[i64]> {
        &self.times
    }

    /// A sampler of the events strictly before the time of each seed. It draws uniformly;
    /// [`Strategy::Latest`](burn_gnn_sampling::Strategy::Latest) takes the most recent events.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`].
    pub fn sampler(&self, fanouts: impl Into<Fanouts>) -> Result<NeighborSampler, GraphError> {
        let mut sampler = NeighborSampler::new(&self.graph, fanouts)?;
        for etype in 0..self.graph.relations().len() {
            sampler = sampler.with_shared_times(etype, self.times.clone())?;
        }
        Ok(sampler)
    }

    /// The time from each sampled edge to its seed, by block and edge type: [`edge_ages`] with the times of this graph.
    ///
    /// # Errors
    /// As [`edge_ages`].
    pub fn dt(&self, batch: &MiniBatch, times: &[i64]) -> Result<Vec<Vec<Vec<i64>>>, GraphError> {
        edge_ages(batch, times, |event| {
            let time = usize::try_from(event).ok().and_then(|event| self.times.get(event));
            time.copied().ok_or_else(|| wrong("an edge that is no event"))
        })
    }
}

/// The time from each sampled edge to its seed, by block and edge type, in the order of the edges of the block.
///
/// `times` are the times of the seeds, in the order in which they were given to `sample_before`. Every seed has a
/// separate tree, so the seed of an edge is that of its destination. `time_of` returns the time of an event by its
/// number, from memory or from a file.
///
/// # Errors
/// Another number of times than seeds; a batch that was sampled without times; an error of `time_of`.
pub fn edge_ages(
    batch: &MiniBatch,
    times: &[i64],
    mut time_of: impl FnMut(u64) -> Result<i64, GraphError>,
) -> Result<Vec<Vec<Vec<i64>>>, GraphError> {
    let roots = batch.roots.as_ref().and_then(|roots| roots.first());
    let roots = roots.ok_or_else(|| wrong("a batch without trees"))?;
    let mut of_batch = Vec::with_capacity(batch.blocks.len());
    for block in &batch.blocks {
        let mut of_block = Vec::with_capacity(block.relations().len());
        for (etype, relation) in block.relations().iter().enumerate() {
            let edges = relation.dst().iter().zip(block.original_edge_ids(etype).iter());
            let age = |(&row, &event): (&u32, &u64)| {
                let seed = roots.get(row as usize).and_then(|&seed| times.get(seed as usize));
                let seed = seed.ok_or_else(|| wrong("fewer times than seeds"))?;
                Ok(seed.saturating_sub(time_of(event)?))
            };
            of_block.push(edges.map(age).collect::<Result<Vec<i64>, GraphError>>()?);
        }
        of_batch.push(of_block);
    }
    Ok(of_batch)
}

/// The error of arguments of [`edge_ages`].
fn wrong(found: &str) -> GraphError {
    GraphError::Setting {
        arg: "batch",
        expected: "a batch of these events that `sample_before` sampled, and a time per seed"
            .into(),
        found: found.into(),
    }
}
