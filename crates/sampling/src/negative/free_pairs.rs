//! Enumerates the pairs of nodes without an edge.

/// Enumeration of all pairs of nodes without an edge, sorted by source and destination.
#[derive(Clone, Debug)]
pub struct FreePairs {
    /// Number of pairs before each source, then the number of all pairs.
    pub(super) before: Vec<u64>,
}

impl FreePairs {
    /// Takes the number of pairs of each source.
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
    /// Source of pair number `pair`, and its number among the pairs of that source.
    pub fn find(&self, pair: u64) -> (u32, u32) {
        let u = self.before.partition_point(|&b| b <= pair) - 1;
        (u as u32, (pair - self.before[u]) as u32)
    }
}
