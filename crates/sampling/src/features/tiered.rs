//! Caches features of hot nodes in memory in front of a slower source.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hot_nodes::{COLD, places, share, within};
use super::memory::MemoryRows;
use crate::FeatureSource;
use burn_gnn_graph::GraphError;

/// Rows that were read from each tier so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Out of memory.
    pub hot: u64,
    /// Out of the source behind.
    pub cold: u64,
}

impl Hits {
    /// Cache hit rate, in `0.0..=1.0`; 0 before the first row.
    pub fn rate(&self) -> f64 {
        self.hot as f64 / (self.hot + self.cold).max(1) as f64
    }
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} rows from memory ({:.1} %)",
            self.hot,
            self.hot + self.cold,
            100.0 * self.rate()
        )
    }
}

/// A source whose hot nodes have their features cached in memory (GraphLearn-for-PyTorch: `Feature` with
/// `split_ratio`). One gather reads both and gives rows in the order asked for; results do not depend on the split, as
/// hot rows are kept as f32.
///
/// ```
/// use burn_gnn_sampling::RowType;
/// use burn_gnn_sampling::{FeatureSource, MemoryRows, TieredRows};
/// let all = MemoryRows::new(&[0.0, 1.0, 2.0, 3.0], 1, RowType::F32)?;
/// let tiered = TieredRows::with_ratio(all, &[3, 1, 0, 2], 0.5)?; // rows 3 and 1 in memory
/// assert_eq!(tiered.gather(&[0, 1, 3])?, [0.0, 1.0, 3.0]);
/// assert_eq!((tiered.hits().hot, tiered.hits().cold), (2, 1));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Debug)]
pub struct TieredRows<S> {
    hot: MemoryRows,
    /// Place of each row in memory; [`COLD`] for the others.
    place: Vec<u32>,
    behind: S,
    from_hot: AtomicU64,
    from_cold: AtomicU64,
}

impl<S: FeatureSource> TieredRows<S> {
    /// Keeps the first `round(split_ratio · rows)` of `hot_order`, the ids in descending order of hotness, in memory.
    ///
    /// # Errors
    /// A ratio outside `0.0..=1.0`; ids out of range or repeated; too few; what keeps the source from reading.
    pub fn with_ratio(behind: S, hot_order: &[u32], split_ratio: f64) -> Result<Self, GraphError> {
        let hot = share(hot_order, split_ratio, behind.num_rows())?;
        Self::with_rows(behind, hot)
    }

    /// Keeps as many of the first rows of `hot_order` as `budget` bytes hold, the 4 bytes per row of the index not
    /// counted.
    ///
    /// # Errors
    /// As [`with_ratio`](Self::with_ratio).
    pub fn with_budget(behind: S, hot_order: &[u32], budget: usize) -> Result<Self, GraphError> {
        let hot = within(hot_order, budget, behind.width(), 1);
        Self::with_rows(behind, hot)
    }

    fn with_rows(behind: S, hot: &[u32]) -> Result<Self, GraphError> {
        let place = places(hot, behind.num_rows())?;
        let hot = MemoryRows::of(&behind, hot)?;
        Ok(Self { hot, place, behind, from_hot: AtomicU64::new(0), from_cold: AtomicU64::new(0) })
    }

    /// Rows read from each tier since the start.
    pub fn hits(&self) -> Hits {
        Hits {
            hot: self.from_hot.load(Ordering::Relaxed),
            cold: self.from_cold.load(Ordering::Relaxed),
        }
    }
    /// Bytes of the rows in memory.
    pub fn hot_bytes(&self) -> usize {
        self.hot.bytes()
    }
    /// The source of the other rows.
    pub fn behind(&self) -> &S {
        &self.behind
    }
}

impl<S: FeatureSource> FeatureSource for TieredRows<S> {
    fn num_rows(&self) -> usize {
        self.place.len()
    }
    fn width(&self) -> usize {
        self.behind.width()
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        let width = self.width();
        // Runs of ids of one tier go to it in one call, straight into their place.
        let is_hot = |id: &u32| self.place[*id as usize] != COLD;
        let (mut from, mut left, mut places, mut hot) = (0, out, vec![], 0);
        for run in ids.chunk_by(|a, b| is_hot(a) == is_hot(b)) {
            let (here, rest) = left.split_at_mut(run.len() * width);
            if is_hot(&run[0]) {
                places.clear();
                places.extend(run.iter().map(|&id| self.place[id as usize]));
                self.hot.read_rows(&places, here)?;
                hot += run.len();
            } else {
                self.behind.read_rows(run, here)?;
            }
            (from, left) = (from + run.len(), rest);
        }
        debug_assert_eq!(from, ids.len());
        self.from_hot.fetch_add(hot as u64, Ordering::Relaxed);
        self.from_cold.fetch_add((ids.len() - hot) as u64, Ordering::Relaxed);
        Ok(())
    }
}
