//! The interface of cache replacement policies.

/// Marks a row without a slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// Decisions of a policy for a batch, by positions in the batch.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Cached rows, with their slots.
    pub(super) hits: Vec<(u32, u32)>,
    pub(super) misses: Vec<u32>,
    /// Misses to be cached, with their slots, which are free after all hits are copied.
    pub(super) kept: Vec<(u32, u32)>,
    /// Rows that are not in the batch but in the same sectors as its misses, to be cached: ids and slots.
    pub(super) sector_rows: Vec<(u32, u32)>,
}

/// Chooses the rows that stay in a cache.
pub(crate) trait Policy: Send {
    /// Maximal number of cached rows.
    fn capacity(&self) -> usize;
    /// Decides on the next batch, whose ids are distinct.
    fn step(&mut self, ids: &[u32]) -> Step;
}
