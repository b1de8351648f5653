//! Defines how a cache chooses the rows that it keeps.

/// No slot has this number.
pub(super) const NO_SLOT: u32 = u32::MAX;

/// What becomes of the rows of a batch, by their places in it.
#[derive(Debug, Default)]
pub(crate) struct Step {
    /// Rows in memory, and their slots.
    pub(super) hits: Vec<(u32, u32)>,
    pub(super) misses: Vec<u32>,
    /// Misses that stay, and the slots that they take, after all hits were used.
    pub(super) kept: Vec<(u32, u32)>,
    /// Rows that are not of the batch and come from the disk with its misses: their ids, and the slots that they take.
    pub(super) beside: Vec<(u32, u32)>,
}

/// Which rows stay.
pub(crate) trait Policy: Send {
    /// Rows that stay at most.
    fn capacity(&self) -> usize;
    /// The next batch; its rows differ.
    fn step(&mut self, ids: &[u32]) -> Step;
}
