//! Caches feature rows of a file in memory.

mod belady;
mod cached_rows;
mod lru;
#[cfg(feature = "sampling")]
mod packed_batches;
mod packed_rows;
mod planned_rows;
mod policy;
mod prefetch_queue;
mod slots;
mod sweep;

pub use cached_rows::CachedRows;
#[cfg(feature = "sampling")]
pub use packed_batches::PackedBatches;
pub use packed_rows::PackedRows;
pub use planned_rows::{PlannedBatch, PlannedRows};
pub use slots::CacheStats;
