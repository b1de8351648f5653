//! Writes streams of events into files, and reads and samples them there.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use burn_gnn_data::{DataError, EventStream, create_dirs, edge_ages};
use burn_gnn_graph::{EdgeReader, EdgeType, GraphError, Relation};
use burn_gnn_sampling::{Fanouts, MiniBatch, NeighborSampler};
use burn_gnn_store::{
    CscBuild, EdgeChunk, EdgeStream, RowFormat, RowWriter, StoreError, StoredCsc, StoredGraph,
    StoredRows,
};

/// Node type and edge types of [`EventStream::to_graph`].
const NODE: &str = "node";
const EVENT: &str = "event";
const REVERSED: &str = "rev_event";

/// Description of a [`StoredGraph`].
const MANIFEST: &str = "graph.json";

/// The events in the order of time: two edges per event, from its source and from its destination to the event.
const LOG: &str = "log.csc";
/// An edge per event, from its type.
const TYPES: &str = "types.csc";
/// A row per event.
const FEATURES: &str = "features.rows";

/// A stream of events in files, for streams larger than memory: times, types and features stay on disk, and a read or a
/// sample loads only its events. Batches, `dt` and events equal those of [`EventStream`] and
/// [`EventGraph`](burn_gnn_data::EventGraph) bit for bit.
///
/// ```text
/// folder/
///   graph.json, event.csc, rev_event.csc   the graph, whose edges have times
///   log.csc                                source, destination and time by number of the event
///   types.csc, features.rows               types and features by number of the event, where the stream has them
/// ```
///
/// ```
/// use burn_gnn::data::EventStream;
/// use burn_gnn::sampling::{SampleKey, Strategy};
/// use burn_gnn::store::StoredEvents;
/// # let dir = tempfile::tempdir()?;
/// # let dir = dir.path();
/// let mail = EventStream::new(3, vec![0, 1, 1], vec![2, 2, 2], vec![10, 20, 30])?;
/// let mail = mail.with_features(1, vec![0.5, 1.5, 2.5])?;
/// let stored = StoredEvents::write(&mail, false, dir)?;
/// let sampler = stored.sampler([1])?.with_strategy(Strategy::Latest)?;
/// let batch = sampler.sample_before([("node", [2], [30])], SampleKey::new(0))?;
/// assert_eq!(stored.dt(&batch, &[30])?, [[vec![10]]]); // by block and edge type
/// assert_eq!(stored.features(&[1])?, [1.5]);
/// assert_eq!(stored.read(1..3)?.time(), [20, 30]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StoredEvents {
    graph: StoredGraph,
    log: Arc<StoredCsc>,
    types: Option<Arc<StoredCsc>>,
    features: Option<Arc<StoredRows>>,
}

impl StoredEvents {
    /// Writes a stream that is in memory; see [`write_chunks`](Self::write_chunks).
    ///
    /// # Errors
    /// As [`write_chunks`](Self::write_chunks).
    pub fn write(
        events: &EventStream,
        both_directions: bool,
        dir: impl AsRef<Path>,
    ) -> Result<Self, StoreError> {
        let chunks = || std::iter::once(Ok(events.clone()));
        Self::write_chunks(events.num_nodes(), both_directions, dir, chunks)
    }

    /// Writes a stream that does not fit into memory, in chunks whose times ascend from each chunk to the next one, over
    /// `num_nodes` nodes. The graph has the edge type `event`, and with `both_directions` also `rev_event`, as that of
    /// [`EventStream::to_graph`].
    ///
    /// `chunks` returns the chunks from the beginning. It is called once to count the events, and once per file. Events that
    /// the folder had before are replaced; after an error in writing, the folder has none.
    ///
    /// # Errors
    /// A chunk of another number of nodes, with other types or features than the first one has, or that begins before the
    /// end of the previous one; more than `u32::MAX - 1` events; an error of a chunk; files that cannot be written.
    ///
    /// # Cost
    /// A chunk and the memory of a [`CscBuild`]. Disk: 28 bytes per event and direction, 24 for the log, 12 for types and 4
    /// per feature.
    pub fn write_chunks<I>(
        num_nodes: usize,
        both_directions: bool,
        dir: impl AsRef<Path>,
        chunks: impl Fn() -> I,
    ) -> Result<Self, StoreError>
    where
        I: Iterator<Item = Result<EventStream, StoreError>>,
    {
        let dir = dir.as_ref();
        let totals = Totals::of(num_nodes, chunks())?;
        create_dirs(dir).map_err(|source| DataError::Io { path: dir.to_owned(), source })?;
        // A folder with a description is complete: an earlier one is removed first, and this one is written last.
        remove(&dir.join(MANIFEST))?;
        let build = |file: &str, num_src, num_dst| CscBuild::new(dir.join(file), num_src, num_dst);
        let edges = |of| Edges { chunks: chunks(), now: None, at: 0, first: 0, of };

        let mut directions = vec![(EVENT, EdgesOf::Events)];
        if both_directions {
            directions.push((REVERSED, EdgesOf::Reversed));
        }
        let mut files = vec![];
        for (name, of) in directions {
            let file = format!("{name}.csc");
            let build = build(&file, num_nodes, num_nodes).with_edge_ids().with_times();
            build.run(edges(of))?;
            files.push((EdgeType::new(NODE, name, NODE), file));
        }
        build(LOG, num_nodes, totals.events).with_times().run(edges(EdgesOf::Log))?;
        if totals.num_types > 0 {
            build(TYPES, totals.num_types, totals.events).run(edges(EdgesOf::Types))?;
        } else {
            remove(&dir.join(TYPES))?;
        }
        if totals.feature_size > 0 {
            let (path, size) = (dir.join(FEATURES), totals.feature_size);
            let mut rows = RowWriter::create(path, totals.events, size, RowFormat::F32)?;
            for events in chunks() {
                rows.put(events?.features())?;
            }
            rows.finish()?;
        } else {
            remove(&dir.join(FEATURES))?;
        }
        let files = files.iter().map(|(etype, file)| (etype.clone(), &**file));
        StoredGraph::create(dir, [(NODE, num_nodes)], files)?;
        Self::open(dir)
    }

    /// Opens a folder that [`write`](Self::write) has written. Only headers of files are read.
    ///
    /// # Errors
    /// Files that cannot be read, or that have other numbers of events.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        let graph = StoredGraph::open(dir)?;
        let log = StoredCsc::open(dir.join(LOG))?;
        let there = |file: &str| Some(dir.join(file)).filter(|path| path.exists());
        let types = there(TYPES).map(StoredCsc::open).transpose()?;
        let features = there(FEATURES).map(StoredRows::open).transpose()?.map(Arc::new);
        let events = log.num_nodes().1;
        let counts = [
            (LOG, log.num_edges() / 2),
            (EVENT, graph.files().first().map_or(0, |file| file.num_edges())),
            (TYPES, types.as_ref().map_or(events as u64, |types| types.num_edges())),
            (FEATURES, features.as_ref().map_or(events, |rows| rows.num_rows()) as u64),
        ];
        match counts.into_iter().find(|(_, found)| *found != events as u64) {
            Some((file, found)) => Err(setting(
                "dir",
                format!("files of {events} events"),
                format!("{found} in `{file}`"),
            )),
            None if !log.has_times() => Err(setting("dir", "times in `log.csc`", "none")),
            None => Ok(Self { graph, log, types, features }),
        }
    }

    /// The graph of the events.
    pub fn graph(&self) -> &StoredGraph {
        &self.graph
    }
    /// Number of events.
    pub fn len(&self) -> usize {
        self.log.num_nodes().1
    }
    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.log.num_nodes().0
    }
    /// Number of features of an event.
    pub fn feature_size(&self) -> usize {
        self.features.as_ref().map_or(0, |rows| rows.width())
    }

    /// A sampler of the events strictly before the time of each seed, as
    /// [`EventGraph::sampler`](burn_gnn_data::EventGraph::sampler). Times are read from the files.
    ///
    /// # Errors
    /// As [`NeighborSampler::new`]; files that cannot be read.
    pub fn sampler(&self, fanouts: impl Into<Fanouts>) -> Result<NeighborSampler, GraphError> {
        let graph = self.graph.graph();
        let sampler = NeighborSampler::new(graph, fanouts)?;
        let mut etypes = 0..graph.relations().len();
        etypes.try_fold(sampler, NeighborSampler::with_stored_times)
    }

    /// The time from each sampled edge to its seed, as [`EventGraph::dt`](burn_gnn_data::EventGraph::dt). Only the times of
    /// the sampled edges are read.
    ///
    /// # Errors
    /// As [`edge_ages`]; a file that cannot be read.
    pub fn dt(&self, batch: &MiniBatch, times: &[i64]) -> Result<Vec<Vec<Vec<i64>>>, GraphError> {
        let mut found = vec![];
        edge_ages(batch, times, |event| {
            found.clear();
            self.log.times_of(2 * event..2 * event + 1, &mut found)?;
            let expected = "an event of this stream".to_owned();
            let found = found.first().copied();
            found.ok_or(GraphError::Setting { arg: "batch", expected, found: event.to_string() })
        })
    }

    /// Features of events, row by row; none if the stream has none.
    ///
    /// # Errors
    /// An event out of range; a file that cannot be read.
    pub fn features(&self, events: &[u32]) -> Result<Vec<f32>, StoreError> {
        self.features.as_ref().map_or_else(|| Ok(vec![]), |rows| rows.gather(events))
    }

    /// Reads consecutive events into memory, such as the next batch, or those up to a time that
    /// [`before`](Self::before) finds.
    ///
    /// # Errors
    /// Events out of range; files that cannot be read.
    ///
    /// # Cost
    /// One sequential read of each file.
    pub fn read(&self, events: Range<usize>) -> Result<EventStream, StoreError> {
        if events.start > events.end || events.end > self.len() {
            let expected = format!("a range within 0..{}", self.len());
            return Err(setting("events", expected, format!("{events:?}")));
        }
        let of_log = 2 * events.start as u64..2 * events.end as u64;
        let (mut endpoints, mut times) = (vec![], vec![]);
        self.log.sources_of(of_log.clone(), &mut endpoints)?;
        self.log.times_of(of_log, &mut times)?;
        let of = |at: usize| endpoints.iter().skip(at).step_by(2).copied().collect();
        let times = times.iter().step_by(2).copied().collect();
        let mut stream = EventStream::new(self.num_nodes(), of(0), of(1), times)?;
        if let Some(file) = &self.types {
            let mut types = vec![];
            file.sources_of(events.start as u64..events.end as u64, &mut types)?;
            stream = stream.with_types(types)?;
        }
        if let Some(rows) = &self.features {
            let ids: Vec<u32> = (events.start as u32..events.end as u32).collect();
            stream = stream.with_features(rows.width(), rows.gather(&ids)?)?;
        }
        Ok(stream)
    }

    /// The events strictly before `time`, as [`EventStream::before`].
    ///
    /// # Errors
    /// A file that cannot be read.
    ///
    /// # Cost
    /// Binary search: a read per step.
    pub fn before(&self, time: i64) -> Result<Range<usize>, StoreError> {
        let (mut low, mut high, mut found) = (0, self.len(), vec![]);
        while low < high {
            let middle = low + (high - low) / 2;
            found.clear();
            self.log.times_of(2 * middle as u64..2 * middle as u64 + 1, &mut found)?;
            if found.first().is_some_and(|&t| t < time) { low = middle + 1 } else { high = middle }
        }
        Ok(0..low)
    }

    /// Verifies the checksums of all files.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], and as [`StoredCsc::verify`].
    ///
    /// # Cost
    /// One pass over the files.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.graph.verify()?;
        self.log.verify()?;
        self.types.as_ref().map_or(Ok(()), |types| types.verify())?;
        self.features.as_ref().map_or(Ok(()), |rows| rows.verify())
    }
}

/// Removes a file of an earlier write, if there is one.
fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(DataError::Io { path: path.to_owned(), source }.into())
        }
        _ => Ok(()),
    }
}

fn setting(arg: &'static str, expected: impl Into<String>, found: impl Into<String>) -> StoreError {
    GraphError::Setting { arg, expected: expected.into(), found: found.into() }.into()
}

/// What all chunks have in common.
#[derive(Default)]
struct Totals {
    events: usize,
    /// One more than the largest type; 0 without types.
    num_types: usize,
    feature_size: usize,
}

impl Totals {
    fn of(
        num_nodes: usize,
        chunks: impl Iterator<Item = Result<EventStream, StoreError>>,
    ) -> Result<Self, StoreError> {
        let (mut totals, mut last, mut is_first) = (Self::default(), i64::MIN, true);
        for (number, chunk) in chunks.enumerate() {
            let chunk = chunk?;
            let wrong = |what: &str, expected: String, found: String| {
                setting("chunks", format!("{what} {expected}, as before chunk {number}"), found)
            };
            if chunk.num_nodes() != num_nodes {
                let (expected, found) = (num_nodes.to_string(), chunk.num_nodes().to_string());
                return Err(wrong("the number of nodes", expected, found));
            }
            let types =
                chunk.types().map_or(0, |of| of.iter().max().map_or(1, |&t| t as usize + 1));
            if is_first {
                totals.feature_size = chunk.feature_size();
            } else {
                let (expected, found) = (totals.feature_size, chunk.feature_size());
                if expected != found {
                    let what = "the number of features";
                    return Err(wrong(what, expected.to_string(), found.to_string()));
                }
                if (totals.num_types == 0) != (types == 0) {
                    let text = |none: bool| (if none { "no types" } else { "types" }).to_owned();
                    return Err(wrong(
                        "events with",
                        text(totals.num_types == 0),
                        text(types == 0),
                    ));
                }
            }
            if let [first, ..] = *chunk.time() {
                if first < last {
                    return Err(wrong("times from", last.to_string(), first.to_string()));
                }
                last = chunk.time()[chunk.len() - 1];
            }
            totals.num_types = totals.num_types.max(types);
            totals.events += chunk.len();
            is_first = false;
        }
        if totals.events as u64 > Relation::LIMIT {
            let (count, limit) = (totals.events as u64, Relation::LIMIT);
            let (relation, what) = (EVENT.to_owned(), "events");
            return Err(GraphError::TooLarge { relation, what, count, limit }.into());
        }
        Ok(totals)
    }
}

/// The edges that a file has of each event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EdgesOf {
    /// From the source to the destination.
    Events,
    /// From the destination to the source.
    Reversed,
    /// From the source, and from the destination, to the event.
    Log,
    /// From the type to the event.
    Types,
}

/// Edges of chunks of events, in order.
struct Edges<I> {
    chunks: I,
    now: Option<EventStream>,
    /// Next edge of the chunk.
    at: usize,
    /// Number of the first event of the chunk.
    first: usize,
    of: EdgesOf,
}

impl<I: Iterator<Item = Result<EventStream, StoreError>>> EdgeStream for Edges<I> {
    fn read(&mut self, most: usize, chunk: &mut EdgeChunk) -> Result<usize, StoreError> {
        let per_event = if self.of == EdgesOf::Log { 2 } else { 1 };
        let mut put = 0;
        while put < most {
            let Some(events) = &self.now else {
                let Some(next) = self.chunks.next() else { break };
                (self.now, self.at) = (Some(next?), 0);
                continue;
            };
            let total = per_event * events.len();
            let edges = self.at..total.min(self.at + most - put);
            for edge in edges.clone() {
                let event = edge / per_event;
                let (src, dst) = (events.src()[event], events.dst()[event]);
                let number = (self.first + event) as u32;
                let (from, to) = match self.of {
                    EdgesOf::Events => (src, dst),
                    EdgesOf::Reversed => (dst, src),
                    EdgesOf::Log => (if edge % 2 == 0 { src } else { dst }, number),
                    EdgesOf::Types => (events.types().map_or(0, |types| types[event]), number),
                };
                chunk.src.push(from);
                chunk.dst.push(to);
                if self.of != EdgesOf::Types {
                    chunk.times.push(events.time()[event]);
                }
            }
            (put, self.at) = (put + edges.len(), edges.end);
            if self.at == total {
                self.first += events.len();
                self.now = None;
            }
        }
        Ok(put)
    }
}
