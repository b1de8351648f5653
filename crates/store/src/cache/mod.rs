//! Caches feature rows of a file in memory.

mod ahead;
mod belady;
mod lru;
mod packed;
#[cfg(feature = "sampling")]
mod packed_batches;
mod planned;
mod sweep;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;

pub use packed::PackedRows;
#[cfg(feature = "sampling")]
pub use packed_batches::PackedBatches;
pub use planned::{PlannedBatch, PlannedRows};

use crate::error::StoreError;
use crate::rows::{RowFormat, StoredRows};
use lru::Lru;

/// No slot has this number.
const NO_SLOT: u32 = u32::MAX;

/// What becomes of the rows of a batch, by their places in it.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Rows in memory, and their slots.
    hits: Vec<(u32, u32)>,
    misses: Vec<u32>,
    /// Misses that stay, and the slots that they take, after all hits were used.
    kept: Vec<(u32, u32)>,
    /// Rows that are not of the batch and come from the disk with its misses: their ids, and the slots that they take.
    beside: Vec<(u32, u32)>,
}

/// Which rows stay.
pub(crate) trait Policy: Send {
    /// Rows that stay at most.
    fn capacity(&self) -> usize;
    /// The next batch; its rows differ.
    fn step(&mut self, ids: &[u32]) -> Step;
}

/// What a cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Rows that were in memory, from earlier batches or with other rows of their sectors.
    pub hits: u64,
    /// Rows that were read.
    pub misses: u64,
    /// Bytes that were read for them, whole sectors.
    pub bytes_read: u64,
    /// Time in which reads were waited for.
    pub read_time: Duration,
    /// Time in which the caller waited for a batch.
    pub wait: Duration,
}

impl CacheStats {
    /// Share of rows that were in memory; 0 without rows.
    pub fn hit_rate(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}

impl std::fmt::Display for CacheStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rate, mb) = (100.0 * self.hit_rate(), self.bytes_read as f64 / 1e6);
        write!(
            f,
            "{rate:.1} % of rows in memory, {mb:.1} MB read in {:.2?}, waited {:.2?}",
            self.read_time, self.wait
        )
    }
}

/// Slots of a cache as bytes of the file, and its policy.
#[derive(Debug)]
pub(crate) struct Slots<P> {
    rows: Arc<StoredRows>,
    pub(crate) policy: P,
    bytes: Vec<u8>,
    read: Vec<u8>,
    pub(crate) stats: CacheStats,
}

/// Rows that a budget of bytes holds, with what a policy keeps of each.
pub(crate) fn capacity(rows: &StoredRows, budget: u64) -> usize {
    const OVERHEAD: u64 = 32;
    (budget / (rows.row_bytes() as u64 + OVERHEAD)).min(rows.num_rows() as u64) as usize
}

/// Whether the ids of a batch are rows, each once.
pub(crate) fn check_batch(ids: &[u32], rows: usize) -> Result<(), StoreError> {
    burn_gnn_structure::internal::check_ids("ids", "the features", ids, rows)?;
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => Err(burn_gnn_structure::internal::setting(
            "ids",
            "every row of a batch once",
            &format!("row {} twice", w[0]),
        )
        .into()),
        None => Ok(()),
    }
}

/// Writes rows as f32: `row` has the bytes of each of `from`.
fn widen<'a>(
    of: (RowFormat, usize),
    from: &[(bool, u32)],
    row: impl Fn((bool, u32)) -> &'a [u8] + Sync,
    out: &mut [f32],
) {
    const CHUNK: usize = 512;
    let (format, width) = of;
    if width > 0 {
        let decode = |(out, &from): (&mut [f32], &(bool, u32))| format.decode(row(from), out);
        let chunks = out.par_chunks_mut(CHUNK * width).zip(from.par_chunks(CHUNK));
        chunks.for_each(|(out, from)| out.chunks_exact_mut(width).zip(from).for_each(decode));
    }
}

impl<P: Policy + Sync> Slots<P> {
    pub(crate) fn new(rows: Arc<StoredRows>, policy: P) -> Self {
        Self { rows, policy, bytes: vec![], read: vec![], stats: CacheStats::default() }
    }

    /// Where each row of a batch is, in the cache (`true`) or among what was read, and what stays of it; ids differ
    /// and are in range.
    fn fetch(&mut self, ids: &[u32]) -> Result<(Vec<(bool, u32)>, Step), StoreError> {
        let step = self.policy.step(ids);
        // In the order of the file; rows beside those of the batch have the places behind it.
        let beside = step.beside.iter().map(|b| b.0).zip(ids.len() as u32..);
        let mut order: Vec<(u32, u32)> =
            step.misses.iter().map(|&at| (ids[at as usize], at)).chain(beside).collect();
        order.sort_unstable();
        let sorted: Vec<u32> = order.iter().map(|o| o.0).collect();
        let began = Instant::now();
        self.stats.bytes_read += self.rows.read_sorted(&sorted, &mut self.read)?;
        self.stats.read_time += began.elapsed();
        self.stats.hits += step.hits.len() as u64;
        self.stats.misses += step.misses.len() as u64;
        let mut from: Vec<(bool, u32)> = vec![(false, 0); ids.len() + step.beside.len()];
        step.hits.iter().for_each(|&(at, slot)| from[at as usize] = (true, slot));
        order.iter().enumerate().for_each(|(i, &(_, at))| from[at as usize] = (false, i as u32));
        Ok((from, step))
    }

    fn row(&self, (hit, i): (bool, u32)) -> &[u8] {
        let each = self.rows.row_bytes();
        &(if hit { &self.bytes } else { &self.read })[i as usize * each..][..each]
    }

    /// Keeps what the policy chose; `from` is of the batch and then of the rows beside.
    fn keep(&mut self, from: &[(bool, u32)], step: &Step) {
        let each = self.rows.row_bytes();
        if self.bytes.is_empty() {
            // Room that nobody has touched is no memory; growing by copies would take twice as much, and is left for a
            // budget beyond what the system promises.
            let _ = self.bytes.try_reserve_exact(self.policy.capacity().saturating_mul(each));
        }
        let first = (from.len() - step.beside.len()) as u32;
        let beside = step.beside.iter().zip(first..).map(|(&(_, slot), at)| (at, slot));
        for (at, slot) in step.kept.iter().copied().chain(beside) {
            let (to, i) = (slot as usize * each, from[at as usize].1 as usize * each);
            if self.bytes.len() < to + each {
                self.bytes.resize(to + each, 0);
            }
            self.bytes[to..to + each].copy_from_slice(&self.read[i..i + each]);
        }
    }

    /// Writes the rows of a batch to `out`; ids differ and are in range.
    pub(crate) fn gather(&mut self, ids: &[u32], out: &mut [f32]) -> Result<(), StoreError> {
        let (from, step) = self.fetch(ids)?;
        widen(
            (self.rows.format(), self.rows.width()),
            &from[..ids.len()],
            |from| self.row(from),
            out,
        );
        self.keep(&from, &step);
        Ok(())
    }
}

/// Rows of a file of which those used last stay in memory, under a budget of bytes: for batches that nobody knows
/// before. Where coming batches are known, [`PlannedRows`] reads less.
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
    /// Keeps rows in at most `budget` bytes.
    pub fn new(rows: StoredRows, budget: u64) -> Self {
        let rows = Arc::new(rows);
        let policy = Lru::new(capacity(&rows, budget));
        Self { slots: Mutex::new(Slots::new(rows.clone(), policy)), rows }
    }

    /// The file.
    pub fn rows(&self) -> &StoredRows {
        &self.rows
    }
    /// What the cache did.
    pub fn stats(&self) -> CacheStats {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).stats
    }

    /// The rows of `ids` in that order, repeats allowed, as f32.
    ///
    /// # Errors
    /// As [`StoredRows::gather`].
    pub fn gather_rows(&self, ids: &[u32]) -> Result<Vec<f32>, StoreError> {
        burn_gnn_structure::internal::check_ids("ids", "the features", ids, self.rows.num_rows())?;
        let mut out = vec![0.0; ids.len() * self.rows.width()];
        self.fill(ids, &mut out)?;
        Ok(out)
    }

    /// After an error, or a panic of another thread, what slots hold is not what the policy says: the cache begins
    /// again.
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
