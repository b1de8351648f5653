//! Caches features of hot nodes in memory in front of a slower source.

use crate::features::hot_nodes::{Hits, HotNodes, share, within};
use crate::features::memory::MemoryRows;
use crate::features::source::FeatureSource;
use burn_gnn_graph::GraphError;

/// Caches the features of hot nodes in memory, in front of a slower source (GraphLearn-for-PyTorch: `Feature` with
/// `split_ratio`). A gather reads cached rows from memory and the others from the source. Cached rows are f32, so that
/// results do not depend on the split.
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
    rows: MemoryRows,
    hot: HotNodes,
    source: S,
}

impl<S: FeatureSource> TieredRows<S> {
    /// Caches the first `round(split_ratio · rows)` ids of `hot_order`, which are in descending order of hotness.
    ///
    /// # Errors
    /// A ratio outside `0.0..=1.0`; ids that are out of range, repeated or too few; a source that cannot be read.
    pub fn with_ratio(source: S, hot_order: &[u32], split_ratio: f64) -> Result<Self, GraphError> {
        let hot = share(hot_order, split_ratio, source.num_rows())?;
        Self::with_rows(source, hot)
    }

    /// Caches as many of the first ids of `hot_order` as fit into `budget` bytes. The budget does not count the index of 4
    /// bytes per row.
    ///
    /// # Errors
    /// As [`with_ratio`](Self::with_ratio).
    pub fn with_budget(source: S, hot_order: &[u32], budget: usize) -> Result<Self, GraphError> {
        let hot = within(hot_order, budget, source.width(), 1);
        Self::with_rows(source, hot)
    }

    fn with_rows(source: S, hot: &[u32]) -> Result<Self, GraphError> {
        let index = HotNodes::new(hot, source.num_rows())?;
        Ok(Self { rows: MemoryRows::of(&source, hot)?, hot: index, source })
    }

    /// Number of rows read from each tier since construction.
    pub fn hits(&self) -> Hits {
        self.hot.hits()
    }
    /// Bytes of the cached rows.
    pub fn hot_bytes(&self) -> usize {
        self.rows.bytes()
    }
    /// The source of the rows that are not cached.
    pub fn source(&self) -> &S {
        &self.source
    }
}

impl<S: FeatureSource> FeatureSource for TieredRows<S> {
    fn num_rows(&self) -> usize {
        self.hot.num_rows()
    }
    fn width(&self) -> usize {
        self.source.width()
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        let width = self.width();
        // Consecutive ids of the same tier are read in one call, directly into `out`.
        let is_hot = |id: &u32| self.hot.place(*id).is_some();
        let (mut from, mut left, mut places, mut hot) = (0, out, vec![], 0);
        for run in ids.chunk_by(|a, b| is_hot(a) == is_hot(b)) {
            let (here, rest) = left.split_at_mut(run.len() * width);
            if is_hot(&run[0]) {
                places.clear();
                places.reserve(run.len());
                places.extend(run.iter().filter_map(|&id| self.hot.place(id)));
                self.rows.read_rows(&places, here)?;
                hot += run.len();
            } else {
                self.source.read_rows(run, here)?;
            }
            (from, left) = (from + run.len(), rest);
        }
        debug_assert_eq!(from, ids.len());
        self.hot.count(hot, ids.len() - hot);
        Ok(())
    }
}
