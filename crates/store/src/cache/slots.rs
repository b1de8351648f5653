//! Memory of the cached rows, in slots that a policy assigns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use burn_gnn_structure::internal::{check_ids, setting};
use rayon::prelude::*;

use super::policy::{Policy, Step};
use crate::error::StoreError;
use crate::rows::{RowFormat, StoredRows};

/// Statistics of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Number of rows that were in memory, from earlier batches or because they share a sector with them.
    pub hits: u64,
    /// Number of rows that were read from disk.
    pub misses: u64,
    /// Bytes that were read from disk, in whole sectors.
    pub bytes_read: u64,
    /// Time spent waiting for reads.
    pub read_time: Duration,
    /// Time that the caller spent waiting for batches.
    pub wait: Duration,
}

impl CacheStats {
    /// Share of rows that were in memory; 0 before the first row.
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

/// Slots of a cache, which hold rows as in the file, and its policy.
#[derive(Debug)]
pub(crate) struct Slots<P> {
    rows: Arc<StoredRows>,
    pub(crate) policy: P,
    bytes: Vec<u8>,
    read: Vec<u8>,
    pub(crate) stats: CacheStats,
}

/// Number of rows that fit into a budget of bytes, including the overhead of the policy per row.
pub(crate) fn capacity(rows: &StoredRows, budget: u64) -> usize {
    const OVERHEAD: u64 = 32;
    (budget / (rows.row_bytes() as u64 + OVERHEAD)).min(rows.num_rows() as u64) as usize
}

/// Returns an error unless the ids of a batch are in range and distinct.
pub(crate) fn check_batch(ids: &[u32], rows: usize) -> Result<(), StoreError> {
    check_ids("ids", "the features", ids, rows)?;
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => {
            Err(setting("ids", "distinct rows in a batch", &format!("row {} twice", w[0])).into())
        }
        None => Ok(()),
    }
}

/// Decodes rows to f32. `row` returns the bytes of each entry of `from`.
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

    /// Reads the missing rows of a batch. Returns the location of each row, in the cache (`true`) or in the read
    /// buffer, and the decisions of the policy. Ids are distinct and in range.
    pub(super) fn fetch(&mut self, ids: &[u32]) -> Result<(Vec<(bool, u32)>, Step), StoreError> {
        let step = self.policy.step(ids);
        // Sorted by position in the file. Rows of shared sectors have positions after those of the batch.
        let sector_rows = step.sector_rows.iter().map(|b| b.0).zip(ids.len() as u32..);
        let mut order: Vec<(u32, u32)> =
            step.misses.iter().map(|&at| (ids[at as usize], at)).chain(sector_rows).collect();
        order.sort_unstable();
        let sorted: Vec<u32> = order.iter().map(|o| o.0).collect();
        let began = Instant::now();
        self.stats.bytes_read += self.rows.read_sorted(&sorted, &mut self.read)?;
        self.stats.read_time += began.elapsed();
        self.stats.hits += step.hits.len() as u64;
        self.stats.misses += step.misses.len() as u64;
        let mut from: Vec<(bool, u32)> = vec![(false, 0); ids.len() + step.sector_rows.len()];
        step.hits.iter().for_each(|&(at, slot)| from[at as usize] = (true, slot));
        order.iter().enumerate().for_each(|(i, &(_, at))| from[at as usize] = (false, i as u32));
        Ok((from, step))
    }

    pub(super) fn row(&self, (hit, i): (bool, u32)) -> &[u8] {
        let each = self.rows.row_bytes();
        &(if hit { &self.bytes } else { &self.read })[i as usize * each..][..each]
    }

    /// Caches the rows that the policy chose. `from` lists the rows of the batch, then the rows of shared sectors.
    pub(super) fn keep(&mut self, from: &[(bool, u32)], step: &Step) {
        let each = self.rows.row_bytes();
        if self.bytes.is_empty() {
            // Reserved memory is not used until it is written, and growing by copies would need twice as much. If the
            // budget exceeds what the system grants, the buffer grows by copies.
            let _ = self.bytes.try_reserve_exact(self.policy.capacity().saturating_mul(each));
        }
        let first = (from.len() - step.sector_rows.len()) as u32;
        let sector_rows = step.sector_rows.iter().zip(first..).map(|(&(_, slot), at)| (at, slot));
        for (at, slot) in step.kept.iter().copied().chain(sector_rows) {
            let (to, i) = (slot as usize * each, from[at as usize].1 as usize * each);
            if self.bytes.len() < to + each {
                self.bytes.resize(to + each, 0);
            }
            self.bytes[to..to + each].copy_from_slice(&self.read[i..i + each]);
        }
    }

    /// Writes the rows of a batch to `out`. Ids are distinct and in range.
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
