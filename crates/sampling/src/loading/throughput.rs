//! Measures the throughput of a loader.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

/// Counts and times of the batches that an epoch has returned so far.
///
/// ```
/// use std::time::Duration;
/// use burn_gnn_sampling::Throughput;
/// let (elapsed, waited) = (Duration::from_secs(2), Duration::from_secs(1));
/// let t = Throughput { batches: 2, seeds: 2_000, edges: 50_000, bytes: 3_000_000, elapsed, waited, ..Throughput::default() };
/// assert_eq!(t.to_string(), "2 batches: 1000 seeds/s, 25000 edges/s, 1.5 MB/s of features, 50 % of the time waiting");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throughput {
    /// Number of batches.
    pub batches: usize,
    /// Number of seeds of this rank.
    pub seeds: usize,
    /// Number of sampled edges.
    pub edges: usize,
    /// Bytes of features.
    pub bytes: usize,
    /// Time since the start of the epoch.
    pub elapsed: Duration,
    /// Time that the caller has waited for batches.
    pub waited: Duration,
    /// Time spent sampling, including communication, summed over worker threads. With prefetching it overlaps with
    /// training.
    pub sampling: Duration,
    /// Time spent reading features and labels, summed over worker threads.
    pub fetching: Duration,
}

impl AddAssign for Throughput {
    fn add_assign(&mut self, more: Self) {
        self.batches += more.batches;
        self.seeds += more.seeds;
        self.edges += more.edges;
        self.bytes += more.bytes;
        self.elapsed += more.elapsed;
        self.waited += more.waited;
        self.sampling += more.sampling;
        self.fetching += more.fetching;
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = seconds(self.elapsed);
        let rate = |n: usize| n as f64 / all;
        write!(
            f,
            "{} {}: {:.0} seeds/s, {:.0} edges/s, {:.1} MB/s of features, {:.0} % of the time waiting",
            self.batches,
            if self.batches == 1 { "batch" } else { "batches" },
            rate(self.seeds),
            rate(self.edges),
            rate(self.bytes) / 1e6,
            100.0 * self.waited.as_secs_f64() / all
        )
    }
}

/// Seconds, at least 1 ns, so that rates are finite.
fn seconds(t: Duration) -> f64 {
    t.as_secs_f64().max(1e-9)
}
