//! Converts a stream of events to a graph whose edges have times.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::{EdgeType, Graph, GraphError};
use burn_gnn_sampling::{Fanouts, MiniBatch, NeighborSampler};

use super::event_stream::EventStream;
use crate::files::setting;

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

    /// The time from each sampled edge to its seed, by block and edge type, in the order of the edges of the block.
    /// `times` are the times of the seeds, in the order in which they were given to `sample_before`. Every seed has a
    /// separate tree, so the seed of an edge is that of its destination.
    ///
    /// # Errors
    /// Other numbers of times than seeds, or a batch that was sampled without times.
    pub fn dt(&self, batch: &MiniBatch, times: &[i64]) -> Result<Vec<Vec<Vec<i64>>>, GraphError> {
        let expected = "a batch of this graph that `sample_before` sampled, and a time per seed";
        let wrong = |found: &str| match setting("batch", expected, found) {
            DataError::Graph(e) => e,
            _ => unreachable!("`setting` makes an error of a graph"),
        };
        let roots = batch.roots.as_ref().and_then(|roots| roots.first());
        let roots = roots.ok_or_else(|| wrong("a batch without trees"))?;
        let of_block = |block: &burn_gnn_sampling::Block| {
            let of_type = |etype: usize| {
                let dst = block.relations()[etype].dst().iter();
                dst.zip(block.edge_ids(etype))
                    .map(|(&row, &edge)| {
                        let seed =
                            roots.get(row as usize).and_then(|&seed| times.get(seed as usize));
                        let time = self.times.get(edge as usize);
                        match (seed, time) {
                            (Some(seed), Some(time)) => Ok(seed.saturating_sub(*time)),
                            _ => Err(wrong("fewer seeds or edges")),
                        }
                    })
                    .collect()
            };
            (0..block.relations().len()).map(of_type).collect()
        };
        batch.blocks.iter().map(of_block).collect()
    }
}
