//! Defines `EventHistory`: the latest events of nodes before given times.

use std::collections::HashMap;
use std::ops::Range;

use burn_gnn_data::EventStream;

/// The events of every node in the order of time, for queries of the latest events before a time.
///
/// An event belongs to its source and to its destination. A query reads events strictly before its time, so that its
/// result is a function of these events only.
///
/// ```
/// use burn_gnn_data::EventStream;
/// use burn_gnn_links::EventHistory;
/// let events = EventStream::new(3, vec![0, 1, 0], vec![1, 2, 1], vec![10, 20, 20])?;
/// let history = EventHistory::new(&events);
/// let recent = history.latest(&[1, 1], &[20, 21], 2);
/// assert_eq!(recent.counts(), [1, 2]);
/// assert_eq!(recent.row(0), [0]); // the event at time 10 only: those at time 20 are not before 20
/// assert_eq!(recent.row(1), [2, 1]); // latest first
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Cost
/// 8 bytes per event and 8 per node, in addition to the shared stream. A query takes `O(log events of the node + k)`.
#[derive(Clone, Debug)]
pub struct EventHistory {
    events: EventStream,
    /// First entry of each node in `of_node`.
    offsets: Vec<usize>,
    /// Events of all nodes, those of one node in ascending order.
    of_node: Vec<u32>,
}

impl EventHistory {
    /// Sorts events by node.
    ///
    /// # Cost
    /// `O(nodes + events)`.
    pub fn new(events: &EventStream) -> Self {
        let (src, dst) = (events.src(), events.dst());
        let mut offsets = vec![0usize; events.num_nodes() + 1];
        // An event from a node to itself is one event of the node.
        let is_loop = |e: usize| src[e] == dst[e];
        for e in 0..events.len() {
            offsets[src[e] as usize + 1] += 1;
            if !is_loop(e) {
                offsets[dst[e] as usize + 1] += 1;
            }
        }
        for v in 0..events.num_nodes() {
            offsets[v + 1] += offsets[v];
        }
        let mut next = offsets.clone();
        let mut of_node = vec![0u32; offsets[events.num_nodes()]];
        let mut push = |v: u32, e: usize| {
            let at = &mut next[v as usize];
            of_node[*at] = e as u32;
            *at += 1;
        };
        for e in 0..events.len() {
            push(src[e], e);
            if !is_loop(e) {
                push(dst[e], e);
            }
        }
        Self { events: events.clone(), offsets, of_node }
    }

    /// The events.
    pub fn events(&self) -> &EventStream {
        &self.events
    }

    /// The events of `node` strictly before `time`, in ascending order.
    ///
    /// # Panics
    /// Unknown node.
    #[track_caller]
    pub fn before(&self, node: u32, time: i64) -> &[u32] {
        let of_node = &self.of_node[self.offsets[node as usize]..self.offsets[node as usize + 1]];
        let times = self.events.time();
        &of_node[..of_node.partition_point(|&e| times[e as usize] < time)]
    }

    /// The up to `k` latest events of each node strictly before its time, latest first. Of events of one time the later
    /// one in the stream comes first. `nodes` may repeat.
    ///
    /// # Panics
    /// Unknown node, or not one time per node.
    #[track_caller]
    pub fn latest(&self, nodes: &[u32], times: &[i64], k: usize) -> RecentEvents {
        assert_eq!(nodes.len(), times.len(), "`times` must have one time per node");
        let mut found = RecentEvents::with_capacity(nodes.len(), k);
        let (src, dst, time) = (self.events.src(), self.events.dst(), self.events.time());
        for (&v, &t) in nodes.iter().zip(times) {
            for &e in self.before(v, t).iter().rev().take(k) {
                let event = e as usize;
                let is_source = src[event] == v;
                found.events.push(e);
                found.neighbors.push(if is_source { dst[event] } else { src[event] });
                found.is_source.push(is_source);
                found.dt.push(t.saturating_sub(time[event]));
            }
            found.offsets.push(found.events.len());
        }
        found
    }
}

/// The latest events of several nodes, which [`EventHistory::latest`] finds. The entries of node `i` are those of
/// `offsets[i]..offsets[i + 1]`, latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentEvents {
    /// Largest number of events per node.
    pub k: usize,
    /// First entry of each node, and the number of entries.
    pub offsets: Vec<usize>,
    /// Event of each entry.
    pub events: Vec<u32>,
    /// Other node of the event.
    pub neighbors: Vec<u32>,
    /// Whether the node is the source of the event.
    pub is_source: Vec<bool>,
    /// Time from the event to the query.
    pub dt: Vec<i64>,
}

impl RecentEvents {
    fn with_capacity(nodes: usize, k: usize) -> Self {
        let mut offsets = Vec::with_capacity(nodes + 1);
        offsets.push(0);
        Self { k, offsets, events: vec![], neighbors: vec![], is_source: vec![], dt: vec![] }
    }
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of events of each node.
    pub fn counts(&self) -> Vec<usize> {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
    /// The events of node `i`, latest first.
    ///
    /// # Panics
    /// `i` is not below [`len`](Self::len).
    #[track_caller]
    pub fn row(&self, i: usize) -> &[u32] {
        &self.events[self.offsets[i]..self.offsets[i + 1]]
    }
    /// For each entry its position in an array `[nodes, k]`, where the events of a node come first in its row.
    pub(crate) fn padded_positions(&self) -> Vec<usize> {
        let row =
            |i: usize| (0..self.offsets[i + 1] - self.offsets[i]).map(move |j| i * self.k + j);
        (0..self.len()).flat_map(row).collect()
    }
    /// Row of each entry.
    pub(crate) fn rows(&self) -> Vec<u32> {
        let row = |i: usize| std::iter::repeat_n(i as u32, self.offsets[i + 1] - self.offsets[i]);
        (0..self.len()).flat_map(row).collect()
    }
}

/// Pairs whose links are scored, each at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkQueries {
    /// Source of each pair.
    pub src: Vec<u32>,
    /// Destination of each pair.
    pub dst: Vec<u32>,
    /// Time of each pair. Events strictly before it are read.
    pub time: Vec<i64>,
    /// Numbers of the pairs that are scored; `None`: all. Ranks score parts of one batch.
    pub scored: Option<Vec<u32>>,
}

impl LinkQueries {
    /// Queries of the events `events`, followed by as many with the destinations `negatives`.
    ///
    /// # Panics
    /// The range is not within the stream, or there is not one negative per event.
    #[track_caller]
    pub fn with_negatives(stream: &EventStream, events: Range<usize>, negatives: &[u32]) -> Self {
        assert_eq!(events.len(), negatives.len(), "`negatives` must have one node per event");
        let (src, time) = (&stream.src()[events.clone()], &stream.time()[events.clone()]);
        Self {
            src: [src, src].concat(),
            dst: [&stream.dst()[events], negatives].concat(),
            time: [time, time].concat(),
            scored: None,
        }
    }
    /// Scores only the events `part` of those of [`with_negatives`](Self::with_negatives), and their negatives.
    #[must_use]
    pub fn with_part(mut self, part: Range<usize>) -> Self {
        let events = self.src.len() / 2;
        if part != (0..events) {
            let of = |from: usize| (from + part.start) as u32..(from + part.end) as u32;
            self.scored = Some(of(0).chain(of(events)).collect());
        }
        self
    }
    /// Number of pairs that are scored.
    pub fn len(&self) -> usize {
        self.scored.as_ref().map_or(self.src.len(), Vec::len)
    }
    /// Whether no pair is scored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The distinct nodes of the pairs that are scored, and the number of each source and destination among them, so that
    /// a node is encoded once per time.
    pub(crate) fn distinct_nodes(&self) -> DistinctNodes {
        let mut numbers = HashMap::new();
        let (mut nodes, mut times) = (vec![], vec![]);
        let mut number = |v: u32, t: i64| {
            *numbers.entry((v, t)).or_insert_with(|| {
                nodes.push(v);
                times.push(t);
                nodes.len() as u32 - 1
            })
        };
        let src: Vec<u32> = self.src.iter().zip(&self.time).map(|(&v, &t)| number(v, t)).collect();
        let dst: Vec<u32> = self.dst.iter().zip(&self.time).map(|(&v, &t)| number(v, t)).collect();
        let all = NodesAtTimes { nodes, times, part: None };
        let Some(scored) = &self.scored else { return DistinctNodes { at: all, src, dst } };
        let of = |numbers: &[u32]| -> Vec<u32> {
            scored.iter().map(|&query| numbers[query as usize]).collect()
        };
        let (mut src, mut dst) = (of(&src), of(&dst));
        let at = all.part([&src[..], &dst[..]].concat());
        at.renumber(&mut src);
        at.renumber(&mut dst);
        DistinctNodes { at, src, dst }
    }
}

/// Distinct pairs of a node and a time.
#[derive(Debug, Default)]
pub(crate) struct NodesAtTimes {
    pub(crate) nodes: Vec<u32>,
    pub(crate) times: Vec<i64>,
    /// If these are some of the pairs of a batch: their numbers, which ascend, and all pairs.
    pub(crate) part: Option<(Vec<u32>, Box<NodesAtTimes>)>,
}

impl NodesAtTimes {
    /// The pairs with some numbers, which may repeat.
    pub(crate) fn part(self, mut rows: Vec<u32>) -> Self {
        rows.sort_unstable();
        rows.dedup();
        let nodes = rows.iter().map(|&row| self.nodes[row as usize]).collect();
        let times = rows.iter().map(|&row| self.times[row as usize]).collect();
        Self { nodes, times, part: Some((rows, Box::new(self))) }
    }
    /// Number of each pair in the batch; `None` if these are all of them.
    pub(crate) fn rows(&self) -> Option<&[u32]> {
        self.part.as_ref().map(|(rows, _)| &rows[..])
    }
    /// Converts numbers in the batch to numbers among these pairs.
    pub(crate) fn renumber(&self, numbers: &mut [u32]) {
        if let Some(rows) = self.rows() {
            numbers.iter_mut().for_each(|n| *n = rows.partition_point(|row| row < n) as u32);
        }
    }
}

/// Distinct nodes of queries.
#[derive(Debug, Default)]
pub(crate) struct DistinctNodes {
    pub(crate) at: NodesAtTimes,
    /// Number of the source of each query.
    pub(crate) src: Vec<u32>,
    /// Number of the destination of each query.
    pub(crate) dst: Vec<u32>,
}
