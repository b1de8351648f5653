//! Aborts a run whose ranks lost contact or wait too long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpi::request::{Request, StaticScope};
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};

use super::handle::{Handle, fail};

/// Interval between two heartbeats of a rank.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Interval between two checks for received heartbeats.
const POLL: Duration = Duration::from_millis(100);
static MESSAGE: [u8; 1] = [1];

/// The collective calls in progress on this rank, with their start time.
pub(super) struct Calls {
    timeout: Duration,
    open: Mutex<Vec<(u64, String, Instant)>>,
}

impl Calls {
    pub(super) fn new(timeout: Duration) -> Self {
        Self { timeout, open: Mutex::new(vec![]) }
    }
    fn with<T>(&self, f: impl FnOnce(&mut Vec<(u64, String, Instant)>) -> T) -> T {
        f(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// Registers a call until the result is dropped.
    pub(super) fn enter(&self, call: &str) -> Open<'_> {
        let id = self.with(|open| {
            let id = open.iter().map(|c| c.0 + 1).max().unwrap_or(0);
            open.push((id, call.to_owned(), Instant::now()));
            id
        });
        Open { calls: self, id }
    }
    /// A message about a call that exceeds the time-out, if there is one.
    fn overdue(&self) -> Option<String> {
        self.with(|open| {
            open.iter()
                .find(|c| c.2.elapsed() > self.timeout)
                .map(|c| format!("waited {:?} in {}", self.timeout, c.1))
        })
    }
}

pub(super) struct Open<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.calls.with(|open| open.retain(|c| c.0 != self.id));
    }
}

/// The watchdog thread, which uses a separate communicator.
pub(super) struct Watch {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Watch {
    pub(super) fn start(handle: Handle, calls: Arc<Calls>, silence: Duration) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = stopped.clone();
        let rank = handle.0.rank() as usize;
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || {
                // Without the watchdog lost ranks would go unnoticed.
                if catch_unwind(AssertUnwindSafe(|| watch(handle, &calls, silence, &stop))).is_err()
                {
                    fail(rank, "the watchdog thread panicked");
                }
            })
            .unwrap_or_else(|e| fail(rank, &format!("could not start a thread: {e}")));
        Self { stopped, thread }
    }
    /// Stops the thread after all ranks have finished.
    pub(super) fn stop(self) {
        self.stopped.store(true, Ordering::Release);
        // A panic of the thread has already aborted all ranks.
        let _ = self.thread.join();
    }
}

/// Sends and receives heartbeats, and aborts the run if a rank is silent or a call exceeds the time-out.
fn watch(handle: Handle, calls: &Calls, silence: Duration, stopped: &AtomicBool) {
    let Handle(comm) = handle;
    let (rank, size) = (comm.rank() as usize, comm.size() as usize);
    let others = || (0..size).filter(|&p| p != rank);
    let mut last_heartbeat = vec![Instant::now(); size];
    let mut sent: Vec<Option<Request<'static, [u8]>>> = (0..size).map(|_| None).collect();
    let mut next = Instant::now();
    let mut last_poll = Instant::now();
    while !stopped.load(Ordering::Acquire) {
        // A process that was suspended has not received heartbeats, so the time of silence starts again.
        if last_poll.elapsed() > silence / 2 {
            last_heartbeat.fill(Instant::now());
        }
        last_poll = Instant::now();
        let beat = Instant::now() >= next;
        if beat {
            next = Instant::now() + HEARTBEAT;
        }
        for p in others() {
            let peer = comm.process_at_rank(p as i32);
            while peer.immediate_probe().is_some() {
                peer.receive_into(&mut [0u8; 1][..]);
                last_heartbeat[p] = Instant::now();
            }
            sent[p] = sent[p].take().and_then(|request| request.test().err());
            if beat && sent[p].is_none() {
                sent[p] = Some(peer.immediate_send(StaticScope, &MESSAGE[..]));
            }
            if last_heartbeat[p].elapsed() > silence && !stopped.load(Ordering::Acquire) {
                fail(rank, &format!("no heartbeat from rank {p} for {silence:?}"));
            }
        }
        if let Some(message) = calls.overdue() {
            fail(rank, &message);
        }
        std::thread::sleep(POLL);
    }
    // All pending heartbeats arrive before MPI is finalised.
    for request in sent.into_iter().flatten() {
        request.wait_without_status();
    }
    comm.barrier();
    for p in others() {
        let peer = comm.process_at_rank(p as i32);
        while peer.immediate_probe().is_some() {
            peer.receive_into(&mut [0u8; 1][..]);
        }
    }
}
