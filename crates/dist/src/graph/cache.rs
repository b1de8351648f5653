//! Copies of the hottest rows of other ranks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;

use super::fetch::RowBytes;

/// How a [`HotRows`] cache did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Rows kept.
    pub rows: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Rows of other ranks that were asked for and in the cache, repeats counted.
    pub hits: u64,
    /// Rows of other ranks that were asked for and not in the cache, repeats counted.
    pub misses: u64,
    /// Bytes of rows that did not have to travel, at most: of a row that one call asks for twice, both count.
    pub bytes_saved: u64,
}

impl CacheStats {
    /// Share of rows of other ranks that the cache had, in `0.0..=1.0`; 0 before the first row.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

impl fmt::Display for CacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, saved) = (100.0 * self.hit_rate(), self.bytes_saved as f64 / 1e6);
        write!(f, "{} rows kept, {rate:.1} % of {} remote rows were there, {saved:.1} MB saved", self.rows, self.hits + self.misses)
    }
}

/// Rows of one feature column of other ranks' nodes, kept on this rank; made by [`DistGraph::hot_rows`](crate::DistGraph::hot_rows).
///
/// Features do not change, so a copy never grows old.
#[derive(Debug)]
pub struct HotRows {
    pub(crate) ntype: usize,
    pub(crate) column: String,
    place: HashMap<u64, u32>,
    bytes: RowBytes,
    row_bytes: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl HotRows {
    pub(crate) fn new(ntype: usize, column: &str, ids: &[u64], bytes: RowBytes, row_bytes: usize) -> Self {
        let place = ids.iter().copied().zip(0..).collect();
        Self { ntype, column: column.to_owned(), place, bytes, row_bytes, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }
    pub(crate) fn get(&self, id: u64) -> Option<&[u8]> {
        let &at = self.place.get(&id)?;
        Some(&self.bytes[at as usize * self.row_bytes..][..self.row_bytes])
    }
    pub(crate) fn count(&self, hits: u64, misses: u64) {
        self.hits.fetch_add(hits, Ordering::Relaxed);
        self.misses.fetch_add(misses, Ordering::Relaxed);
    }
    /// How it did so far.
    pub fn stats(&self) -> CacheStats {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        CacheStats { rows: self.place.len(), bytes: self.bytes.len(), hits, misses, bytes_saved: hits * self.row_bytes as u64 }
    }
}
