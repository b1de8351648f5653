//! Prefetches batches with their feature rows through an optimal cache.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::belady::Belady;
use super::policy::Policy;
use super::prefetch_queue::PrefetchQueue;
use super::slots::{CacheStats, Slots, capacity, check_batch};
use crate::error::StoreError;
use crate::rows::StoredRows;

/// Number of batches that are prepared before they are planned, and of batches that are read before they are used.
const AHEAD: usize = 2;
/// Memory of a planned read: row, next use, and entry among the last reads.
const PLANNED_BYTES: u64 = 56;

/// A batch with its feature rows.
#[derive(Debug)]
pub struct PlannedBatch<B> {
    /// The batch.
    pub batch: B,
    /// Feature rows of its ids, in order.
    pub rows: Vec<f32>,
}

/// Prefetches batches with their feature rows: while a batch is used, the next ones are sampled and read.
///
/// The rows of a batch are known before it is used, since sampling is a function of (seed, step, original id). Batches
/// of a window are sampled in advance, and the cache evicts the rows whose next use is farthest (Belady's optimal
/// cache). The reads of a batch are sorted, merged and submitted together. Three quarters of the budget hold rows, and
/// one quarter holds the plan, which limits the length of the window.
///
/// A read past the page cache returns a sector of 4 KiB, and thus several rows if they have 2 KiB or less. Rows that
/// planned batches use are cached too and count as hits. With rows of 256 bytes and a cache for two fifths of the file,
/// this reduced the bytes read to a quarter.
///
/// Rows and their order depend neither on the budget nor on the number of threads. Hits do not depend on threads.
///
/// ```
/// use std::sync::Arc;
/// use burn_gnn_store::{PlannedRows, RowFormat, RowWriter, StoreError, StoredRows};
/// # let dir = tempfile::tempdir().unwrap();
/// # let file = dir.path().join("rows");
/// let mut writer = RowWriter::create(&file, 3, 1024, RowFormat::F32)?; // a row fills a sector of 4 KiB
/// writer.put(&[1.0; 3 * 1024])?;
/// writer.finish()?;
/// let rows = Arc::new(StoredRows::open(&file)?);
/// let batches = [vec![0, 1], vec![1, 2], vec![2]].into_iter().enumerate().map(|(step, ids)| Ok((step, ids)));
/// let mut planned = PlannedRows::new(rows, 1 << 20, 100, batches);
/// for batch in &mut planned {
///     let batch = batch?;
///     println!("step {}: {} numbers", batch.batch, batch.rows.len());
/// }
/// assert_eq!((planned.stats().hits, planned.stats().misses), (2, 3));
/// # Ok::<(), StoreError>(())
/// ```
///
/// # Resuming
/// Save [`next_step`](Self::next_step) in a checkpoint, and start [`of_steps`](Self::of_steps) from it. No earlier
/// batch is sampled or read. Batches are the same as in an uninterrupted run; the cache starts empty, so the first
/// batches read more.
#[derive(Debug)]
pub struct PlannedRows<B> {
    next_step: u64,
    capacity: usize,
    batches: PrefetchQueue<Result<PlannedBatch<B>, StoreError>>,
    stats: Arc<Mutex<CacheStats>>,
}

impl<B: Send + 'static> PlannedRows<B> {
    /// Takes batches from an iterator, each with the distinct ids that it reads. At most `window` batches are planned,
    /// or fewer if their plan exceeds a quarter of the `budget` in bytes. The first error ends the iteration.
    pub fn new<I>(rows: Arc<StoredRows>, budget: u64, window: usize, batches: I) -> Self
    where
        I: IntoIterator<Item = Result<(B, Vec<u32>), StoreError>>,
        I::IntoIter: Send + 'static,
    {
        let stats = Arc::new(Mutex::new(CacheStats::default()));
        let (made, make) = sync_channel(AHEAD);
        let (filled, receive) = sync_channel(AHEAD);
        let batches = batches.into_iter();
        let maker = std::thread::spawn(move || {
            for batch in batches {
                let last = batch.is_err();
                if made.send(batch).is_err() || last {
                    return;
                }
            }
        });
        let room = budget / 4 * 3;
        let policy = if rows.share_sectors() {
            // An eighth of the budget is for rows that are read but not yet cached.
            let sector_rows = capacity(&rows, room / 8);
            Belady::new(capacity(&rows, room - room / 8)).with_sectors(
                rows.row_bytes(),
                rows.num_rows(),
                sector_rows,
            )
        } else {
            Belady::new(capacity(&rows, room))
        };
        let (shared, capacity) = (stats.clone(), policy.capacity());
        let reader = std::thread::spawn(move || {
            let cache = Slots::new(rows.clone(), policy);
            let plan =
                Plan { rows, cache, window: window.max(1), reads: budget / 4 / PLANNED_BYTES };
            plan.run(&make, |batch, of| {
                let mut stats = shared.lock().unwrap_or_else(PoisonError::into_inner);
                *stats = CacheStats { wait: stats.wait, ..of };
                drop(stats);
                filled.send(batch).is_ok()
            });
        });
        let batches = PrefetchQueue::new(receive, vec![maker, reader]);
        Self { next_step: 0, capacity, batches, stats }
    }

    /// Creates the batches with the numbers `steps` by `make`, which returns a batch and the ids that it reads. A run
    /// that was stopped after batch `k - 1` resumes with `k..end`. A worker thread calls `make` with these numbers, in
    /// order.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use burn_gnn_store::{PlannedRows, RowFormat, RowWriter, StoreError, StoredRows};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let file = dir.path().join("rows");
    /// let mut writer = RowWriter::create(&file, 3, 1, RowFormat::F32)?;
    /// writer.put(&[1.0, 2.0, 3.0])?;
    /// writer.finish()?;
    /// let rows = Arc::new(StoredRows::open(&file)?);
    /// let make = |step: u64| Ok((step, vec![step as u32 % 3]));
    /// let mut planned = PlannedRows::of_steps(rows, 1 << 20, 100, 4..6, make);
    /// assert_eq!(planned.next_step(), 4);
    /// let batch = planned.next().unwrap()?;
    /// assert_eq!((batch.batch, batch.rows, planned.next_step()), (4, vec![2.0], 5));
    /// # Ok::<(), StoreError>(())
    /// ```
    pub fn of_steps<F>(
        rows: Arc<StoredRows>,
        budget: u64,
        window: usize,
        steps: Range<u64>,
        make: F,
    ) -> Self
    where
        F: FnMut(u64) -> Result<(B, Vec<u32>), StoreError> + Send + 'static,
    {
        let first = steps.start;
        let mut planned = Self::new(rows, budget, window, steps.map(make));
        planned.next_step = first;
        planned
    }

    /// Number of the next batch.
    pub fn next_step(&self) -> u64 {
        self.next_step
    }

    /// Maximal number of cached rows.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Statistics of the cache so far.
    pub fn stats(&self) -> CacheStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker thread that plans batches and reads rows.
struct Plan {
    rows: Arc<StoredRows>,
    cache: Slots<Belady>,
    window: usize,
    /// Maximal number of planned reads.
    reads: u64,
}

impl Plan {
    fn run<B>(
        mut self,
        make: &Receiver<Result<(B, Vec<u32>), StoreError>>,
        mut put: impl FnMut(Result<PlannedBatch<B>, StoreError>, CacheStats) -> bool,
    ) {
        let (mut waiting, mut more, mut failed) = (VecDeque::new(), true, None);
        loop {
            while more
                && (waiting.is_empty()
                    || waiting.len() < self.window
                        && (self.cache.policy.planned_reads() as u64) < self.reads)
            {
                match make.recv() {
                    Ok(Ok((batch, ids))) => {
                        if let Err(e) = check_batch(&ids, self.rows.num_rows()) {
                            (more, failed) = (false, Some(e));
                            break;
                        }
                        self.cache.policy.plan(&ids);
                        waiting.push_back((batch, ids));
                    }
                    Ok(Err(e)) => (more, failed) = (false, Some(e)),
                    Err(_) => more = false,
                }
            }
            let Some((batch, ids)) = waiting.pop_front() else { break };
            let mut rows = vec![0.0; ids.len() * self.rows.width()];
            let read = self.cache.gather(&ids, &mut rows);
            let stats = self.cache.stats;
            match read {
                Ok(()) if put(Ok(PlannedBatch { batch, rows }), stats) => {}
                Ok(()) => return,
                Err(e) => {
                    put(Err(e), stats);
                    return;
                }
            }
        }
        if let Some(e) = failed {
            put(Err(e), self.cache.stats);
        }
    }
}

impl<B> Iterator for PlannedRows<B> {
    type Item = Result<PlannedBatch<B>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let began = Instant::now();
        let next = self.batches.next();
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).wait += began.elapsed();
        self.next_step += u64::from(matches!(next, Some(Ok(_))));
        next
    }
}
