//! Holds the cached rows of a file in slots, which a policy assigns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burn_gnn_structure::internal::{check_ids, setting};
use rayon::prelude::*;

use super::policy::{Policy, Step};
use crate::error::StoreError;
use crate::rows::{RowFormat, StoredRows};

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
    check_ids("ids", "the features", ids, rows)?;
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => {
            Err(setting("ids", "every row of a batch once", &format!("row {} twice", w[0])).into())
        }
        None => Ok(()),
    }
}

/// Writes rows as f32: `row` has the bytes of each of `from`.
pub(super) fn widen<'a>(
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
    pub(super) fn fetch(&mut self, ids: &[u32]) -> Result<(Vec<(bool, u32)>, Step), StoreError> {
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

    pub(super) fn row(&self, (hit, i): (bool, u32)) -> &[u8] {
        let each = self.rows.row_bytes();
        &(if hit { &self.bytes } else { &self.read })[i as usize * each..][..each]
    }

    /// Keeps what the policy chose; `from` is of the batch and then of the rows beside.
    pub(super) fn keep(&mut self, from: &[(bool, u32)], step: &Step) {
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
