//! Measures the calls, bytes and time of communication.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::communicator::{Communicator, Failure};

/// Calls, bytes and time of a [`Metered`] communicator and its duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of collective calls.
    pub calls: u64,
    /// Bytes sent to other ranks.
    pub bytes_sent: u64,
    /// Bytes received from other ranks.
    pub bytes_received: u64,
    /// Time inside calls, including the time spent waiting for other ranks. Concurrent calls of several threads add up.
    pub time: Duration,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |b: u64| b as f64 / 1e6;
        let (sent, got) = (mb(self.bytes_sent), mb(self.bytes_received));
        write!(
            f,
            "{} calls, {sent:.1} MB sent, {got:.1} MB received, {:.3} s",
            self.calls,
            self.time.as_secs_f64()
        )
    }
}

#[derive(Debug, Default)]
struct Meter {
    calls: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    time: Mutex<Duration>,
}

/// A communicator that counts its traffic. Its duplicates share the counters.
///
/// ```
/// use burn_gnn_dist::{Communicator, Failure, Metered, run_ranks};
/// let sent = run_ranks(3, |comm| {
///     let comm = Metered::new(comm);
///     comm.all_to_all_v("rows", vec![vec![0; 10]; 3])?;
///     Ok::<_, Failure>(comm.traffic().bytes_sent)
/// })?;
/// assert_eq!(sent, [20; 3]); // to each of two others
/// # Ok::<(), Failure>(())
/// ```
#[derive(Clone, Debug)]
pub struct Metered {
    inner: Arc<dyn Communicator>,
    meter: Arc<Meter>,
}

impl Metered {
    /// Wraps a communicator; counters start at zero.
    pub fn new(inner: Arc<dyn Communicator>) -> Self {
        Self { inner, meter: Arc::default() }
    }
    /// Traffic so far.
    pub fn traffic(&self) -> Traffic {
        let m = &self.meter;
        Traffic {
            calls: m.calls.load(Ordering::Relaxed),
            bytes_sent: m.sent.load(Ordering::Relaxed),
            bytes_received: m.received.load(Ordering::Relaxed),
            time: *m.time.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
    fn count<T>(
        &self,
        sent: usize,
        call: impl FnOnce() -> Result<T, Failure>,
        received: impl FnOnce(&T) -> usize,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let value = call()?;
        self.meter.calls.fetch_add(1, Ordering::Relaxed);
        self.meter.sent.fetch_add(sent as u64, Ordering::Relaxed);
        self.meter.received.fetch_add(received(&value) as u64, Ordering::Relaxed);
        *self.meter.time.lock().unwrap_or_else(PoisonError::into_inner) += start.elapsed();
        Ok(value)
    }
    /// Bytes of all messages to or from other ranks.
    fn remote_bytes(&self, messages: &[Vec<u8>]) -> usize {
        messages.iter().enumerate().filter(|(p, _)| *p != self.rank()).map(|(_, m)| m.len()).sum()
    }
}

impl Communicator for Metered {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn all_gather(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
        let sent = bytes.len() * (self.size() - 1);
        self.count(sent, || self.inner.all_gather(name, bytes), |all| self.remote_bytes(all))
    }
    fn all_to_all_v(&self, name: &str, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
        self.count(
            self.remote_bytes(&send),
            || self.inner.all_to_all_v(name, send),
            |all| self.remote_bytes(all),
        )
    }
    fn all_reduce(&self, name: &str, values: &mut [f64]) -> Result<(), Failure> {
        let bytes = size_of_val(values) * (self.size() - 1);
        self.count(bytes, || self.inner.all_reduce(name, values), |()| bytes)
    }
    fn duplicate(&self, name: &str) -> Result<Arc<dyn Communicator>, Failure> {
        Ok(Arc::new(Self { inner: self.inner.duplicate(name)?, meter: self.meter.clone() }))
    }
}
