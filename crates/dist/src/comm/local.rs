//! Ranks as threads of one process.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::communicator::{Communicator, Failure};

/// The data that a rank contributes to a collective call.
#[derive(Debug)]
enum Contribution {
    All(Vec<u8>),
    Sum(Vec<f64>),
    /// One message per rank, which its receiver takes.
    Each(Vec<Mutex<Vec<u8>>>),
}

/// The state of one communicator. Calls on a communicator and on its duplicates are independent.
#[derive(Debug, Default)]
struct Channel {
    /// Number of finished rounds, by which a waiting rank detects the end of its round.
    generation: u64,
    arrived: usize,
    slots: Vec<Option<(String, Contribution)>>,
    /// Contributions of the last finished round. The next round can only finish after all ranks have entered it, and
    /// thus have read this one.
    round: Arc<Vec<Contribution>>,
    /// Number of duplicates that each rank has created.
    duplicates: Vec<usize>,
    /// Channels of the duplicates, in the order of their creation.
    children: Vec<usize>,
}

impl Channel {
    fn new(size: usize) -> Self {
        Self {
            slots: (0..size).map(|_| None).collect(),
            duplicates: vec![0; size],
            ..Self::default()
        }
    }
}

#[derive(Debug, Default)]
struct State {
    channels: Vec<Channel>,
    failed: Option<Failure>,
    done: Vec<bool>,
}

#[derive(Debug)]
struct Shared {
    size: usize,
    timeout: Duration,
    state: Mutex<State>,
    /// Notified when a round finishes or a rank fails.
    arrived: Condvar,
    #[cfg(test)]
    counts: Counts,
}

/// Cost of calls, summed over ranks.
#[cfg(test)]
#[derive(Debug, Default)]
struct Counts {
    /// Number of additions.
    additions: std::sync::atomic::AtomicUsize,
    /// Number of wake-ups.
    wakes: std::sync::atomic::AtomicUsize,
}

impl Shared {
    fn new(size: usize, timeout: Duration) -> Self {
        let state =
            State { channels: vec![Channel::new(size)], done: vec![false; size], failed: None };
        Self {
            size,
            timeout,
            state: Mutex::new(state),
            arrived: Condvar::new(),
            #[cfg(test)]
            counts: Counts::default(),
        }
    }
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under the lock can panic halfway through an update, so a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Records a failure and returns the first one, because later failures are its consequences.
    fn record(&self, state: &mut State, failure: Failure) -> Failure {
        let first = state.failed.get_or_insert(failure).clone();
        self.arrived.notify_all();
        first
    }
    fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        self.record(&mut state, failure);
    }
    fn finish(&self, rank: usize) {
        let mut state = self.lock();
        state.done[rank] = true;
        let slots = state.channels.iter().flat_map(|c| c.slots.iter().enumerate());
        let waiting = slots
            .filter(|(r, _)| *r != rank)
            .find_map(|(r, s)| s.as_ref().map(|s| (r, s.0.clone())));
        if let Some((waiting, call)) = waiting {
            let message = format!("returned while rank {waiting} waits in {call}");
            self.record(&mut state, Failure { rank, message });
        }
    }

    /// Waits until all ranks have entered the call, and returns their contributions by rank.
    fn rendezvous(
        &self,
        rank: usize,
        channel: usize,
        call: String,
        contribution: Contribution,
    ) -> Result<Arc<Vec<Contribution>>, Failure> {
        let mut state = self.lock();
        if let Some(f) = &state.failed {
            return Err(f.clone());
        }
        if let Some(gone) = state.done.iter().position(|&d| d) {
            let message = format!("returned while rank {rank} is in {call}");
            return Err(self.record(&mut state, Failure { rank: gone, message }));
        }
        let slots = &state.channels[channel].slots;
        let other = slots.iter().enumerate().find_map(|(r, s)| {
            s.as_ref().filter(|s| r == rank || s.0 != call).map(|s| (r, s.0.clone()))
        });
        if let Some((r, theirs)) = other {
            let remedy = if r == rank {
                "two threads of a rank need a communicator each: `duplicate`"
            } else {
                "all ranks must make the same calls in the same order"
            };
            let message = format!("is in {call} while rank {r} is in {theirs}; {remedy}");
            return Err(self.record(&mut state, Failure { rank, message }));
        }
        let own = &mut state.channels[channel];
        own.slots[rank] = Some((call.clone(), contribution));
        own.arrived += 1;
        if own.arrived == self.size {
            own.round =
                Arc::new(own.slots.iter_mut().filter_map(Option::take).map(|s| s.1).collect());
            own.arrived = 0;
            own.generation += 1;
            self.arrived.notify_all();
            return Ok(own.round.clone());
        }
        let (mine, deadline) = (own.generation, Instant::now() + self.timeout);
        loop {
            let own = &state.channels[channel];
            if own.generation != mine {
                return Ok(own.round.clone());
            }
            if let Some(f) = &state.failed {
                return Err(f.clone());
            }
            let now = Instant::now();
            if now >= deadline {
                let missing: Vec<usize> =
                    (0..self.size).filter(|&r| own.slots[r].is_none()).collect();
                let at_fault = missing.first().copied().unwrap_or(rank);
                let message = format!(
                    "rank {rank} waited {:?} in {call} for ranks {missing:?}",
                    self.timeout
                );
                return Err(self.record(&mut state, Failure { rank: at_fault, message }));
            }
            state = self
                .arrived
                .wait_timeout(state, deadline - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            #[cfg(test)]
            self.counts.wakes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// The channel of the next duplicate of `rank`. The `n`-th duplicates of all ranks share a channel.
    fn duplicate(&self, rank: usize, channel: usize) -> usize {
        let mut state = self.lock();
        let next = state.channels.len();
        let own = &mut state.channels[channel];
        let number = own.duplicates[rank];
        own.duplicates[rank] += 1;
        if let Some(&child) = own.children.get(number) {
            return child;
        }
        own.children.push(next);
        state.channels.push(Channel::new(self.size));
        next
    }
}

#[derive(Debug)]
struct LocalComm {
    rank: usize,
    channel: usize,
    shared: Arc<Shared>,
}

impl LocalComm {
    fn fail<T>(&self, message: String) -> Result<T, Failure> {
        let mut state = self.shared.lock();
        Err(self.shared.record(&mut state, Failure { rank: self.rank, message }))
    }
    fn rendezvous(
        &self,
        call: String,
        contribution: Contribution,
    ) -> Result<Arc<Vec<Contribution>>, Failure> {
        self.shared.rendezvous(self.rank, self.channel, call, contribution)
    }
}

/// The numbers that ranks contributed to a sum, by rank.
fn sums_of(round: &[Contribution]) -> Vec<&[f64]> {
    round.iter().map(|d| if let Contribution::Sum(v) = d { v.as_slice() } else { &[] }).collect()
}

impl Communicator for LocalComm {
    fn rank(&self) -> usize {
        self.rank
    }
    fn size(&self) -> usize {
        self.shared.size
    }
    fn all_gather(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Failure> {
        let round = self.rendezvous(format!("all_gather `{name}`"), Contribution::All(bytes))?;
        Ok(round
            .iter()
            .map(|d| if let Contribution::All(b) = d { b.clone() } else { Vec::new() })
            .collect())
    }
    fn all_to_all_v(&self, name: &str, send: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
        if send.len() != self.size() {
            return self.fail(format!(
                "`{name}` sends {} messages, expected one for each of {} ranks",
                send.len(),
                self.size()
            ));
        }
        let messages = Contribution::Each(send.into_iter().map(Mutex::new).collect());
        let round = self.rendezvous(format!("all_to_all_v `{name}`"), messages)?;
        let take = |d: &Contribution| match d {
            Contribution::Each(m) => {
                std::mem::take(&mut *m[self.rank].lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => Vec::new(),
        };
        Ok(round.iter().map(take).collect())
    }
    fn all_reduce(&self, name: &str, values: &mut [f64]) -> Result<(), Failure> {
        let (size, own) = (self.size(), values.len());
        let round =
            self.rendezvous(format!("all_reduce `{name}`"), Contribution::Sum(values.to_vec()))?;
        let parts = sums_of(&round);
        if let Some(p) = parts.iter().position(|v| v.len() != own) {
            return self.fail(format!(
                "`{name}` reduces {own} values here and {} on rank {p}",
                parts[p].len()
            ));
        }
        if size == 1 || own == 0 {
            return Ok(());
        }
        // Each rank sums one slice, so that each number is added once over all ranks.
        let slice = |p: usize| own * p / size..own * (p + 1) / size;
        let mine = slice(self.rank);
        let mut sums = vec![0.0; mine.len()];
        for part in parts {
            let part = &part[mine.clone()];
            sums.iter_mut().zip(part).for_each(|(sum, v)| *sum += v);
            #[cfg(test)]
            self.shared
                .counts
                .additions
                .fetch_add(part.len(), std::sync::atomic::Ordering::Relaxed);
        }
        let round =
            self.rendezvous(format!("all_reduce `{name}`: sums"), Contribution::Sum(sums))?;
        sums_of(&round)
            .into_iter()
            .enumerate()
            .for_each(|(p, sums)| values[slice(p)].copy_from_slice(sums));
        Ok(())
    }
    fn duplicate(&self, name: &str) -> Result<Arc<dyn Communicator>, Failure> {
        self.rendezvous(format!("duplicate `{name}`"), Contribution::All(Vec::new()))?;
        let channel = self.shared.duplicate(self.rank, self.channel);
        Ok(Arc::new(Self { rank: self.rank, channel, shared: self.shared.clone() }))
    }
}

/// Settings of a run of ranks inside this process; see [`run_ranks`].
#[derive(Clone, Debug)]
pub struct Ranks {
    size: usize,
    threads: Option<usize>,
    timeout: Duration,
}

impl Ranks {
    /// Defaults: cores are shared evenly by `size` ranks, and a collective call times out after ten minutes.
    pub fn new(size: usize) -> Self {
        Self { size, threads: None, timeout: Duration::from_secs(600) }
    }
    /// Sets the number of threads in the rayon pool of each rank; the default is `max(1, cores / size)`.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }
    /// Sets how long a rank waits in a collective call. Then the run fails with an error that names the missing ranks.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs `f` once per rank; see [`run_ranks`].
    ///
    /// # Errors
    /// As [`run_ranks`].
    pub fn run<R, E, F>(&self, f: F) -> Result<Vec<R>, Failure>
    where
        R: Send,
        E: Display,
        F: Fn(Arc<dyn Communicator>) -> Result<R, E> + Sync,
    {
        if self.size == 0 {
            return Err(Failure {
                rank: 0,
                message: "a run needs at least one rank, got 0".into(),
            });
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or((cores / self.size).max(1));
        let shared = Arc::new(Shared::new(self.size, self.timeout));
        let one = |rank: usize| {
            let comm = Arc::new(LocalComm { rank, channel: 0, shared: shared.clone() });
            let body = || -> Result<R, String> {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .stack_size(16 << 20)
                    .thread_name(move |i| format!("rank{rank}-{i}"))
                    .build()
                    .map_err(|e| format!("thread pool: {e}"))?;
                pool.install(|| f(comm).map_err(|e| e.to_string()))
            };
            match catch_unwind(AssertUnwindSafe(body)) {
                Ok(Ok(value)) => {
                    shared.finish(rank);
                    Some(value)
                }
                Ok(Err(message)) => {
                    shared.fail(Failure { rank, message });
                    None
                }
                Err(payload) => {
                    shared.fail(describe(rank, &*payload));
                    None
                }
            }
        };
        let values: Vec<Option<R>> = std::thread::scope(|s| {
            let one = &one;
            let started: Vec<_> = (0..self.size)
                .map(|rank| {
                    let started = std::thread::Builder::new()
                        .name(format!("rank{rank}"))
                        .spawn_scoped(s, move || one(rank));
                    if let Err(e) = &started {
                        shared.fail(Failure {
                            rank,
                            message: format!("could not start a thread: {e}"),
                        });
                    }
                    started
                })
                .collect();
            // Panics of a rank are caught inside `one`, so a thread only panics on an error of the runtime.
            started.into_iter().map(|h| h.ok().and_then(|h| h.join().ok()).flatten()).collect()
        });
        if let Some(f) = shared.lock().failed.take() {
            return Err(f);
        }
        let found = values.iter().flatten().count();
        if found != self.size {
            return Err(Failure {
                rank: 0,
                message: format!("{found} of {} ranks returned a value", self.size),
            });
        }
        Ok(values.into_iter().flatten().collect())
    }
}

pub(super) fn describe(rank: usize, payload: &(dyn Any + Send)) -> Failure {
    if let Some(f) = payload.downcast_ref::<Failure>() {
        return f.clone();
    }
    let text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned());
    Failure {
        rank,
        message: format!("panicked: {}", text.unwrap_or_else(|| "(no message)".into())),
    }
}

/// Runs `f` on `size` ranks, each a thread with a separate rayon pool, and returns their values by rank.
///
/// The run fails on all ranks, with the message of the rank at fault, if a rank panics, returns an error, returns
/// early, makes another collective call than the other ranks, or does not enter a call before the time-out. Ranks are
/// threads rather than tasks of a shared pool, in which waiting ranks would block all workers.
///
/// Each rank must create separate parameters (from a seed or a record). Parameters that are cloned to several ranks
/// share autodiff nodes, and Burn locks a graph during the whole backward pass.
///
/// ```
/// use burn_gnn_dist::{Failure, run_ranks};
/// let sums = run_ranks(3, |comm| {
///     let mut x = [comm.rank() as f64 + 1.0];
///     comm.all_reduce("sum", &mut x)?;
///     Ok::<_, Failure>(x[0])
/// })?;
/// assert_eq!(sums, [6.0; 3]);
/// let ended = run_ranks(2, |comm| if comm.rank() == 1 { Err("no data") } else { comm.barrier("start").map_err(|_| "ended") });
/// assert_eq!(ended.unwrap_err().to_string(), "rank 1: no data");
/// # Ok::<(), Failure>(())
/// ```
///
/// # Errors
/// The first failure of any rank.
pub fn run_ranks<R, E, F>(size: usize, f: F) -> Result<Vec<R>, Failure>
where
    R: Send,
    E: Display,
    F: Fn(Arc<dyn Communicator>) -> Result<R, E> + Sync,
{
    Ranks::new(size).run(f)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    /// Each number is added once over all ranks, and in rank order for any order of arrival.
    #[test]
    fn an_all_reduce_adds_each_number_once() {
        for (size, len) in [(1, 5), (2, 1), (7, 3), (8, 1000), (60, 257)] {
            let value = |rank: usize, i: usize| ((rank * 31 + i * 7) % 977) as f64 * 0.1;
            let expected: Vec<u64> = (0..len)
                .map(|i| (0..size).fold(0.0, |sum, p| sum + value(p, i)).to_bits())
                .collect();
            let shared = Arc::new(Shared::new(size, Duration::from_secs(600)));
            std::thread::scope(|s| {
                for rank in (0..size).rev() {
                    let (comm, expected) =
                        (LocalComm { rank, channel: 0, shared: shared.clone() }, &expected);
                    s.spawn(move || {
                        let mut values: Vec<f64> = (0..len).map(|i| value(rank, i)).collect();
                        comm.all_reduce("sum", &mut values).unwrap();
                        assert!(values.iter().map(|v| v.to_bits()).eq(expected.iter().copied()));
                    });
                }
            });
            let most = if size == 1 { 0 } else { size * len };
            assert_eq!(
                shared.counts.additions.load(Ordering::Relaxed),
                most,
                "{size} ranks, {len} numbers"
            );
        }
    }

    /// For many ranks and small batches, the total number of additions and wake-ups is linear in the number of ranks.
    #[test]
    fn an_epoch_of_three_hundred_ranks() {
        const RANKS: usize = 300;
        const STEPS: usize = 20;
        const LEN: usize = 20_000;
        let shared = Arc::new(Shared::new(RANKS, Duration::from_secs(600)));
        let begin = Instant::now();
        std::thread::scope(|s| {
            for rank in 0..RANKS {
                let comm = LocalComm { rank, channel: 0, shared: shared.clone() };
                s.spawn(move || {
                    let mut values = vec![1.0; LEN];
                    for step in 0..STEPS {
                        values.fill((rank + step) as f64);
                        comm.all_reduce("gradients", &mut values).unwrap();
                        let sum = (RANKS * (RANKS - 1) / 2 + RANKS * step) as f64;
                        assert!(values.iter().all(|v| *v == sum), "{rank}");
                    }
                    let got = comm
                        .all_to_all_v(
                            "rows",
                            (0..RANKS).map(|to| vec![(rank ^ to) as u8; 64]).collect(),
                        )
                        .unwrap();
                    assert!(
                        got.iter()
                            .enumerate()
                            .all(|(from, bytes)| *bytes == [(rank ^ from) as u8; 64])
                    );
                });
            }
        });
        println!(
            "{RANKS} ranks, {STEPS} sums of {LEN} numbers: {:.2} s",
            begin.elapsed().as_secs_f64()
        );
        let rounds = shared.lock().channels[0].generation as usize;
        assert_eq!(rounds, 2 * STEPS + 1, "a sum takes two rounds");
        assert_eq!(shared.counts.additions.load(Ordering::Relaxed), STEPS * RANKS * LEN);
        // Every rank but the last waits once per round; spurious wake-ups are possible.
        let wakes = shared.counts.wakes.load(Ordering::Relaxed);
        assert!(
            (rounds * (RANKS - 1)..rounds * RANKS * 11 / 10).contains(&wakes),
            "{wakes} wake-ups in {rounds} rounds"
        );
    }
}
