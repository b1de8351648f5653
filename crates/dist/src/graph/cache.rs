//! Caches features of hot nodes that other ranks own.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;

use super::row_bytes::RowBytes;

/// Hits, misses and size of a [`FeatureCache`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureCacheStats {
    /// Number of cached rows.
    pub rows: usize,
    /// Bytes of the cached rows.
    pub bytes: usize,
    /// Number of requested remote rows that were in the cache, counting repeats.
    pub hits: u64,
    /// Number of requested remote rows that were not in the cache, counting repeats.
    pub misses: u64,
    /// Upper bound of the bytes that the cache saved: a row that one call requests twice counts twice.
    pub bytes_saved: u64,
}

impl FeatureCacheStats {
    /// Hits per requested remote row, in `0.0..=1.0`; 0 before the first request.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

impl fmt::Display for FeatureCacheStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, saved) = (100.0 * self.hit_rate(), self.bytes_saved as f64 / 1e6);
        write!(
            f,
            "{} rows cached, {rate:.1} % of {} remote rows hit, {saved:.1} MB saved",
            self.rows,
            self.hits + self.misses
        )
    }
}

/// Cache of one feature column for frequently used nodes of other ranks. Created by
/// [`DistGraph::feature_cache`](crate::DistGraph::feature_cache).
///
/// Stored features are immutable, so entries never expire.
#[derive(Debug)]
pub struct FeatureCache {
    pub(crate) ntype: usize,
    pub(crate) column: String,
    position: HashMap<u64, u32>,
    bytes: RowBytes,
    row_bytes: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl FeatureCache {
    pub(crate) fn new(
        ntype: usize,
        column: &str,
        ids: &[u64],
        bytes: RowBytes,
        row_bytes: usize,
    ) -> Self {
        let position = ids.iter().copied().zip(0..).collect();
        Self {
            ntype,
            column: column.to_owned(),
            position,
            bytes,
            row_bytes,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }
    pub(crate) fn get(&self, id: u64) -> Option<&[u8]> {
        let &at = self.position.get(&id)?;
        Some(&self.bytes[at as usize * self.row_bytes..][..self.row_bytes])
    }
    pub(crate) fn count(&self, hits: u64, misses: u64) {
        self.hits.fetch_add(hits, Ordering::Relaxed);
        self.misses.fetch_add(misses, Ordering::Relaxed);
    }
    /// Statistics since the cache was made.
    pub fn stats(&self) -> FeatureCacheStats {
        let (hits, misses) =
            (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        FeatureCacheStats {
            rows: self.position.len(),
            bytes: self.bytes.len(),
            hits,
            misses,
            bytes_saved: hits * self.row_bytes as u64,
        }
    }
}
