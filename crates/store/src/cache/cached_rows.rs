//! An LRU cache of feature rows.

use std::sync::{Arc, Mutex, PoisonError};

use burn_gnn_structure::internal::check_ids;

use super::lru::Lru;
use super::slots::{CacheStats, Slots, capacity};
use crate::error::StoreError;
use crate::rows::StoredRows;

/// Feature rows of a file with an LRU cache under a budget of bytes, for batches that are not known in advance. If
/// future batches are known, [`PlannedRows`](crate::PlannedRows) reads less.
///
/// ```
/// use burn_gnn_store::{CachedRows, RowFormat, RowWriter, StoredRows};
/// # let dir = tempfile::tempdir().unwrap();
/// # let file = dir.path().join("rows");
/// let mut writer = RowWriter::create(&file, 3, 1, RowFormat::F32)?;
/// writer.put(&[1.0, 2.0, 3.0])?;
/// writer.finish()?;
/// let rows = CachedRows::new(StoredRows::open(&file)?, 1 << 20);
/// assert_eq!(rows.gather_rows(&[2, 2, 0])?, [3.0, 3.0, 1.0]);
/// assert_eq!(rows.gather_rows(&[2, 1])?, [3.0, 2.0]);
/// assert_eq!((rows.stats().hits, rows.stats().misses), (1, 3));
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct CachedRows {
    rows: Arc<StoredRows>,
    slots: Mutex<Slots<Lru>>,
}

impl CachedRows {
    /// Caches rows in at most `budget` bytes.
    pub fn new(rows: StoredRows, budget: u64) -> Self {
        let rows = Arc::new(rows);
        let policy = Lru::new(capacity(&rows, budget));
        Self { slots: Mutex::new(Slots::new(rows.clone(), policy)), rows }
    }

    /// The file of rows.
    pub fn rows(&self) -> &StoredRows {
        &self.rows
    }
    /// Statistics of the cache.
    pub fn stats(&self) -> CacheStats {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).stats
    }

    /// Gathers the rows of `ids`, in order and with repeats, as f32.
    ///
    /// # Errors
    /// As [`StoredRows::gather`].
    pub fn gather_rows(&self, ids: &[u32]) -> Result<Vec<f32>, StoreError> {
        check_ids("ids", "the features", ids, self.rows.num_rows())?;
        let mut out = vec![0.0; ids.len() * self.rows.width()];
        self.fill(ids, &mut out)?;
        Ok(out)
    }

    /// Gathers distinct rows. After an error or a panic of another thread, slots and policy may disagree, so the cache
    /// is emptied.
    fn gather_distinct(&self, ids: &[u32], out: &mut [f32]) -> Result<(), StoreError> {
        let mut slots = self.slots.lock().unwrap_or_else(|poisoned| {
            self.slots.clear_poison();
            let mut slots = poisoned.into_inner();
            slots.policy = slots.policy.emptied();
            slots
        });
        slots.gather(ids, out).inspect_err(|_| slots.policy = slots.policy.emptied())
    }

    fn fill(&self, ids: &[u32], out: &mut [f32]) -> Result<(), StoreError> {
        let mut distinct = ids.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() == ids.len() {
            return self.gather_distinct(ids, out);
        }
        let width = self.rows.width();
        let mut rows = vec![0.0; distinct.len() * width];
        self.gather_distinct(&distinct, &mut rows)?;
        for (id, out) in ids.iter().zip(out.chunks_exact_mut(width.max(1))) {
            let at = distinct
                .binary_search(id)
                .unwrap_or_else(|_| unreachable!("sorted out of the same ids"));
            out.copy_from_slice(&rows[at * width..][..width]);
        }
        Ok(())
    }
}

#[cfg(feature = "sampling")]
impl burn_gnn_sampling::FeatureSource for CachedRows {
    fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }
    fn width(&self) -> usize {
        self.rows.width()
    }
    fn read_rows(
        &self,
        ids: &[u32],
        out: &mut [f32],
    ) -> Result<(), burn_gnn_structure::GraphError> {
        Ok(self.fill(ids, out)?)
    }
}
