//! Defines `EdgeBank`: scores links by the pairs that occurred before.

use std::collections::HashMap;
use std::ops::Range;

use burn_gnn_data::EventStream;
use burn_gnn_models::ModelError;

use super::checks::{event_batches, negatives_of};
use super::history::LinkQueries;

/// Which earlier pairs [`EdgeBank`] remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeBankMemory {
    /// All earlier pairs.
    #[default]
    Unlimited,
    /// Pairs whose last event is at most this length of time before the last event that was read.
    Window(i64),
}

/// Scores a link by whether its pair occurred before (Poursafaei et al., NeurIPS 2022): a baseline without parameters.
///
/// The score is 1 for a remembered pair, otherwise 0. With popularity, equal scores are ordered by the number of earlier
/// events of the destination in either role: `p / (p + 1)` is added, multiplied by one half.
///
/// ```
/// use burn_gnn_data::EventStream;
/// use burn_gnn_links::{EdgeBank, LinkQueries};
/// let events = EventStream::new(3, vec![0, 1], vec![1, 2], vec![10, 20])?;
/// let mut bank = EdgeBank::new().with_both_directions();
/// bank.advance(&events, 0..2);
/// let queries = LinkQueries { src: vec![0, 1, 0], dst: vec![1, 0, 2], time: vec![30; 3], scored: None };
/// assert_eq!(bank.scores(&queries), [1.0, 1.0, 0.0]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EdgeBank {
    memory: EdgeBankMemory,
    both_directions: bool,
    with_popularity: bool,
    /// Time of the last event of each pair.
    last: HashMap<(u32, u32), i64>,
    /// Number of events of each node.
    popularity: Vec<u32>,
    /// Time of the last event; `None` before the first one.
    now: Option<i64>,
}

impl EdgeBank {
    /// Remembers all pairs, in the direction of their events.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets which pairs are remembered.
    #[must_use]
    pub fn with_memory(self, memory: EdgeBankMemory) -> Self {
        Self { memory, ..self }
    }
    /// Remembers a pair in both directions.
    #[must_use]
    pub fn with_both_directions(self) -> Self {
        Self { both_directions: true, ..self }
    }
    /// Orders pairs of equal scores by the popularity of the destination.
    #[must_use]
    pub fn with_popularity(self) -> Self {
        Self { with_popularity: true, ..self }
    }

    /// Reads the events `events`.
    ///
    /// # Panics
    /// The range is not within the stream.
    #[track_caller]
    pub fn advance(&mut self, stream: &EventStream, events: Range<usize>) {
        self.popularity.resize(self.popularity.len().max(stream.num_nodes()), 0);
        let (src, dst, time) = (stream.src(), stream.dst(), stream.time());
        for e in events {
            let (u, v, t) = (src[e], dst[e], time[e]);
            self.last.insert((u, v), t);
            if self.both_directions {
                self.last.insert((v, u), t);
            }
            for node in [u, v] {
                self.popularity[node as usize] += 1;
            }
            self.now = self.now.max(Some(t));
        }
    }

    /// Score of each query that is scored.
    pub fn scores(&self, queries: &LinkQueries) -> Vec<f64> {
        let score = |query: usize| {
            let (u, v) = (queries.src[query], queries.dst[query]);
            let is_known = self.last.get(&(u, v)).is_some_and(|&time| match self.memory {
                EdgeBankMemory::Unlimited => true,
                EdgeBankMemory::Window(length) => {
                    self.now.is_some_and(|now| time >= now.saturating_sub(length))
                }
            });
            let popularity = f64::from(self.popularity.get(v as usize).copied().unwrap_or(0));
            let add =
                if self.with_popularity { popularity / (popularity + 1.0) / 2.0 } else { 0.0 };
            f64::from(u8::from(is_known)) + add
        };
        match &queries.scored {
            None => (0..queries.len()).map(score).collect(),
            Some(scored) => scored.iter().map(|&query| score(query as usize)).collect(),
        }
    }

    /// Scores the events `events` and one negative each, and reads the events batch by batch, so that the score of an
    /// event depends on strictly earlier events only. Events before these must have been read. The result has one score
    /// per event, and one per negative.
    ///
    /// # Errors
    /// `events` is not within the stream; another number of negatives than events; a negative that is not a node; `batch`
    /// is 0.
    pub fn score_events(
        &mut self,
        stream: &EventStream,
        events: Range<usize>,
        negatives: &[u32],
        batch: usize,
    ) -> Result<(Vec<f32>, Vec<f32>), ModelError> {
        let batches = event_batches("events", stream, &events, batch)?;
        negatives_of(stream, &events, negatives)?;
        let (mut positive, mut negative) = (vec![], vec![]);
        for range in batches {
            let of = &negatives[range.start - events.start..range.end - events.start];
            let scores = self.scores(&LinkQueries::with_negatives(stream, range.clone(), of));
            let (p, n) = scores.split_at(range.len());
            positive.extend(p.iter().map(|&s| s as f32));
            negative.extend(n.iter().map(|&s| s as f32));
            self.advance(stream, range);
        }
        Ok((positive, negative))
    }
}
