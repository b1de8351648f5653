//! Defines `EventStream`: timed links between nodes, sorted by time.

use std::ops::Range;
use std::sync::Arc;

use burn_gnn_files::DataError;
use burn_gnn_graph::{GraphError, Relation};

use crate::files::setting;

/// Timed links between nodes, sorted by time: messages, purchases, payments. Each event has a source, a destination, a
/// time, and optionally a type and features.
///
/// * **Nodes** are numbered `0..num_nodes`. Sources and destinations share one numbering, as in a graph of one node
///   type.
/// * **Times** are `i64` in any unit, such as seconds since 1970. Events are sorted by time, and events of one time keep
///   the order in which they were given. Events may have equal times, and pairs may repeat.
/// * Arrays are shared by reference counts: [`clone`](Clone::clone) and [`slice`](Self::slice) copy no event.
///
/// ```
/// use burn_gnn_data::EventStream;
/// let mail = EventStream::new(3, vec![2, 0, 1], vec![1, 1, 2], vec![30, 10, 20])?
///     .with_types(vec![1, 0, 0])?
///     .with_features(2, vec![5.0, 6.0, 1.0, 2.0, 3.0, 4.0])?;
/// assert_eq!((mail.src(), mail.time()), (&[0, 1, 2][..], &[10, 20, 30][..]));
/// assert_eq!(mail.types(), Some(&[0, 0, 1][..]));
/// assert_eq!(mail.features_of(0), [1.0, 2.0]);
/// assert_eq!(mail.before(20), 0..1);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventStream {
    num_nodes: usize,
    src: Arc<[u32]>,
    dst: Arc<[u32]>,
    time: Arc<[i64]>,
    types: Option<Arc<[u32]>>,
    feature_size: usize,
    features: Arc<[f32]>,
    /// Position of each event in the arrays that were given; `None` if they were sorted.
    order: Option<Arc<[u32]>>,
    /// Events of the shared arrays that belong to this stream.
    range: Range<usize>,
}

impl EventStream {
    /// Sorts events by time. The sort is stable.
    ///
    /// # Errors
    /// Arrays of different lengths, a node that is not below `num_nodes`, more than `u32::MAX - 1` nodes or events.
    ///
    /// # Cost
    /// `O(events log events)`, and `O(events)` for sorted times. 16 bytes per event.
    pub fn new(
        num_nodes: usize,
        src: Vec<u32>,
        dst: Vec<u32>,
        time: Vec<i64>,
    ) -> Result<Self, DataError> {
        let events = src.len();
        for (arg, len) in [("dst", dst.len()), ("time", time.len())] {
            same_length(arg, events, len)?;
        }
        for (what, count) in [("nodes", num_nodes), ("events", events)] {
            if count as u64 > Relation::LIMIT {
                let (count, limit) = (count as u64, Relation::LIMIT);
                let relation = String::new();
                return Err(GraphError::TooLarge { relation, what, count, limit }.into());
            }
        }
        for (arg, ids) in [("src", &src), ("dst", &dst)] {
            if let Some((i, id)) = ids.iter().enumerate().find(|(_, id)| **id as usize >= num_nodes)
            {
                let expected = format!("a node in 0..{num_nodes} for event {i}");
                return Err(setting(arg, &expected, &id.to_string()));
            }
        }
        let order = (!time.is_sorted()).then(|| {
            let mut order: Vec<u32> = (0..events as u32).collect();
            order.sort_by_key(|&i| time[i as usize]);
            order
        });
        let (src, dst, time) =
            (sorted(&order, src, 1), sorted(&order, dst, 1), sorted(&order, time, 1));
        Ok(Self {
            num_nodes,
            src: src.into(),
            dst: dst.into(),
            time: time.into(),
            types: None,
            feature_size: 0,
            features: Arc::new([]),
            order: order.map(Into::into),
            range: 0..events,
        })
    }

    /// Adds the type of each event, in the order of the arrays that were given to [`new`](Self::new).
    ///
    /// # Errors
    /// Not one type per event; the stream is a slice of another one.
    pub fn with_types(mut self, types: Vec<u32>) -> Result<Self, DataError> {
        self.check_whole("types")?;
        same_length("types", self.len(), types.len())?;
        self.types = Some(sorted(&self.order, types, 1).into());
        Ok(self)
    }

    /// Adds `size` features per event, row by row, in the order of the arrays that were given to [`new`](Self::new).
    ///
    /// # Errors
    /// Not `size` numbers per event; the stream is a slice of another one.
    pub fn with_features(mut self, size: usize, values: Vec<f32>) -> Result<Self, DataError> {
        self.check_whole("features")?;
        same_length("features", self.len().saturating_mul(size), values.len())?;
        (self.feature_size, self.features) = (size, sorted(&self.order, values, size).into());
        Ok(self)
    }

    fn check_whole(&self, arg: &'static str) -> Result<(), DataError> {
        if self.range == (0..self.src.len()) {
            return Ok(());
        }
        let expected = "a whole stream; add them before `slice`";
        Err(setting(arg, expected, &format!("a slice of events {:?}", self.range)))
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.range.len()
    }
    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
    /// Number of nodes.
    pub fn num_nodes(&self) -> usize {
        self.num_nodes
    }
    /// Source of each event.
    pub fn src(&self) -> &[u32] {
        &self.src[self.range.clone()]
    }
    /// Destination of each event.
    pub fn dst(&self) -> &[u32] {
        &self.dst[self.range.clone()]
    }
    /// Time of each event, in ascending order.
    pub fn time(&self) -> &[i64] {
        &self.time[self.range.clone()]
    }
    /// Type of each event, if events have types.
    pub fn types(&self) -> Option<&[u32]> {
        self.types.as_ref().map(|types| &types[self.range.clone()])
    }
    /// Number of features per event.
    pub fn feature_size(&self) -> usize {
        self.feature_size
    }
    /// Features of all events, row by row.
    pub fn features(&self) -> &[f32] {
        let size = self.feature_size;
        &self.features[self.range.start * size..self.range.end * size]
    }
    /// Features of event `event`; empty if events have no features.
    ///
    /// # Panics
    /// `event` is not below [`len`](Self::len).
    #[track_caller]
    pub fn features_of(&self, event: usize) -> &[f32] {
        &self.features()[event * self.feature_size..(event + 1) * self.feature_size]
    }
    /// Position of each event in the arrays that were given to [`new`](Self::new).
    pub fn input_positions(&self) -> Vec<u32> {
        match &self.order {
            Some(order) => order[self.range.clone()].to_vec(),
            None => (self.range.start as u32..self.range.end as u32).collect(),
        }
    }
    /// The distinct destinations in ascending order, from which random negatives are drawn.
    ///
    /// # Cost
    /// `O(nodes + events)`.
    pub fn destinations(&self) -> Vec<u32> {
        let mut found = vec![false; self.num_nodes];
        self.dst().iter().for_each(|&v| found[v as usize] = true);
        (0..self.num_nodes as u32).filter(|&v| found[v as usize]).collect()
    }

    /// A stream of the events `events`, over the same nodes. The arrays are shared.
    ///
    /// # Panics
    /// The range is not within `0..len()`.
    #[track_caller]
    pub fn slice(&self, events: Range<usize>) -> Self {
        let (len, found) = (self.len(), events.clone());
        assert!(
            events.start <= events.end && events.end <= len,
            "`events` must lie in 0..{len} (events of the stream), got {found:?}"
        );
        let mut part = self.clone();
        part.range = self.range.start + events.start..self.range.start + events.end;
        part
    }
    /// The events strictly before `time`.
    ///
    /// # Cost
    /// Binary search.
    pub fn before(&self, time: i64) -> Range<usize> {
        0..self.time().partition_point(|&t| t < time)
    }
    /// The events of times `times`, such as `start..end`.
    ///
    /// # Cost
    /// Binary search.
    pub fn between(&self, times: Range<i64>) -> Range<usize> {
        let first = self.time().partition_point(|&t| t < times.start);
        first..first.max(self.time().partition_point(|&t| t < times.end))
    }

    /// Windows of the length `length` from `start` on, each with its first time and its events. Windows without events
    /// are included up to that of the last event. With `start` at the first time of the stream no event is left out.
    ///
    /// ```
    /// use burn_gnn_data::EventStream;
    /// let mail = EventStream::new(2, vec![0, 1, 0], vec![1, 0, 1], vec![100, 109, 125])?;
    /// let windows: Vec<_> = mail.windows(100, 10)?.collect();
    /// assert_eq!(windows, [(100, 0..2), (110, 2..2), (120, 2..3)]);
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// `length` is not positive.
    pub fn windows(
        &self,
        start: i64,
        length: i64,
    ) -> Result<impl Iterator<Item = (i64, Range<usize>)> + '_, DataError> {
        if length <= 0 {
            return Err(setting("length", "a positive length of windows", &length.to_string()));
        }
        let last = self.time().last().copied();
        let next = move |&first: &i64| first.checked_add(length);
        let starts = std::iter::successors(Some(start), next);
        Ok(starts
            .take_while(move |&first| last.is_some_and(|last| first <= last))
            .map(move |first| (first, self.between(first..first.saturating_add(length)))))
    }

    /// Ranges of about `size` events in order, for batches. A range never ends between events of equal times: it is
    /// extended up to the next later event, so that whatever is read from earlier batches is strictly earlier. A range
    /// depends on events up to its end only.
    ///
    /// ```
    /// use burn_gnn_data::EventStream;
    /// let mail = EventStream::new(2, vec![0; 5], vec![1; 5], vec![1, 2, 2, 2, 3])?;
    /// assert_eq!(mail.batches(2)?, [0..4, 4..5]);
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// `size` is 0.
    pub fn batches(&self, size: usize) -> Result<Vec<Range<usize>>, DataError> {
        if size == 0 {
            return Err(setting("size", "at least 1 event per batch", "0"));
        }
        let (time, mut start, mut ranges) = (self.time(), 0, vec![]);
        while start < time.len() {
            let last = time[(start + size).min(time.len()) - 1];
            let end = start + time[start..].partition_point(|&t| t <= last);
            ranges.push(start..end);
            start = end;
        }
        Ok(ranges)
    }
}

/// Permutes rows of `size` values, unless they are in order.
fn sorted<T: Copy>(order: &Option<impl AsRef<[u32]>>, values: Vec<T>, size: usize) -> Vec<T> {
    let Some(order) = order else { return values };
    let row = |&i: &u32| values[i as usize * size..(i as usize + 1) * size].iter().copied();
    order.as_ref().iter().flat_map(row).collect()
}

fn same_length(arg: &'static str, expected: usize, found: usize) -> Result<(), DataError> {
    if expected == found {
        return Ok(());
    }
    Err(setting(arg, &format!("{expected} values for the events of `src`"), &found.to_string()))
}
