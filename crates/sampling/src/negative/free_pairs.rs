//! Numbers the pairs of nodes without an edge.

/// All pairs of nodes without an edge, in the order of their sources, those of a source in the order of their
/// destinations.
#[derive(Clone, Debug)]
pub struct FreePairs {
    /// Pairs before each source, and the number of all.
    pub(super) before: Vec<u64>,
}

impl FreePairs {
    /// Of the number of pairs of each source.
    pub fn new(counts: impl Iterator<Item = u64>) -> Self {
        let sums = counts.scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Self { before: std::iter::once(0).chain(sums).collect() }
    }
    /// Number of pairs.
    pub fn total(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }
    /// Source of a pair, given by its place among all, and its place among those of the source.
    pub fn find(&self, pair: u64) -> (u32, u32) {
        let u = self.before.partition_point(|&b| b <= pair) - 1;
        (u as u32, (pair - self.before[u]) as u32)
    }
}
