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

/// Batches that are made before they are planned, and that are read before they are used.
const AHEAD: usize = 2;
/// Memory of a planned read: its row, its next batch, its entry among the last reads.
const PLANNED_BYTES: u64 = 56;

/// A batch and its rows.
#[derive(Debug)]
pub struct PlannedBatch<B> {
    /// What was made.
    pub batch: B,
    /// The rows of its ids, in their order.
    pub rows: Vec<f32>,
}

/// Batches in their order, each with its rows: while one is used, the next ones are made and read.
///
/// What a batch reads is known before it is used, since draws are functions of (seed, step, original id): so the
/// batches of a window are prefetched, and of the rows in memory those stay that are needed first (Belady's optimal
/// cache). Reads of a batch are sorted, merged and made at once. Three quarters of the budget are rows, the rest is
/// the plan, which is how long the window can be.
///
/// Of rows of 2 KiB or less a read past the page cache brings several, as it is of 4 KiB: those of them that coming
/// batches read stay as well, and count as hits. At 256 bytes a row a quarter of the bytes were read, where two
/// fifths of the file found room.
///
/// The rows and their order depend neither on the budget nor on threads, hits not on threads.
///
/// ```
/// use std::sync::Arc;
/// use burn_gnn_store::{PlannedRows, RowFormat, RowWriter, StoreError, StoredRows};
/// # let dir = tempfile::tempdir().unwrap();
/// # let file = dir.path().join("rows");
/// let mut writer = RowWriter::create(&file, 3, 1024, RowFormat::F32)?; // a row of 4 KiB comes alone
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
/// [`of_steps`](Self::of_steps) begins at any batch, and nothing of those before it is made or read:
/// [`next_step`](Self::next_step) is saved with a checkpoint. The rows are those of a run that nobody stopped; the
/// cache begins empty, so the first batches read more.
#[derive(Debug)]
pub struct PlannedRows<B> {
    next_step: u64,
    capacity: usize,
    batches: PrefetchQueue<Result<PlannedBatch<B>, StoreError>>,
    stats: Arc<Mutex<CacheStats>>,
}

impl<B: Send + 'static> PlannedRows<B> {
    /// Batches of an iterator, each with the ids that it reads, which differ. At most `window` batches are planned
    /// ahead, and as many as a quarter of the `budget` in bytes describes. The first error ends the batches.
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
            // An eighth is for rows on their way into the cache.
            let beside = capacity(&rows, room / 8);
            Belady::new(capacity(&rows, room - room / 8)).with_sectors(
                rows.row_bytes(),
                rows.num_rows(),
                beside,
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

    /// The batches with the numbers `steps`, which `make` makes, each with the ids that it reads: a run that was
    /// stopped after batch `k - 1` goes on with `k..end`. `make` is called with these numbers alone, in their
    /// order, on a thread of this value.
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

    /// Number of the batch that comes next: the number of batches that were taken, after the first of
    /// [`of_steps`](Self::of_steps).
    pub fn next_step(&self) -> u64 {
        self.next_step
    }

    /// Number of rows that the cache holds at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What the cache did until now.
    pub fn stats(&self) -> CacheStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that plans and reads.
struct Plan {
    rows: Arc<StoredRows>,
    cache: Slots<Belady>,
    window: usize,
    /// Most reads that are planned.
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
