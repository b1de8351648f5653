//! Measures the throughput of a loader.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

/// What an epoch has delivered so far.
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
    /// Batches taken.
    pub batches: usize,
    /// Their own seeds, those of this process.
    pub seeds: usize,
    /// Their sampled edges.
    pub edges: usize,
    /// Bytes of their features.
    pub bytes: usize,
    /// Since the epoch began.
    pub elapsed: Duration,
    /// Of it, how long the caller waited for batches.
    pub waited: Duration,
    /// How long threads sampled the batches taken, exchanges between processes included. Made ahead, they are sampled
    /// beside training.
    pub sampling: Duration,
    /// How long threads read the features and labels of the batches taken, likewise.
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

/// A time that never divides by 0.
fn seconds(t: Duration) -> f64 {
    t.as_secs_f64().max(1e-9)
}
