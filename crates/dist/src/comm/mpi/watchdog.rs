//! Aborts a run whose ranks lost contact or wait too long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpi::request::{Request, StaticScope};
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};

use super::handle::{Handle, fail};

/// Between two signs of life of a rank.
const BEAT: Duration = Duration::from_secs(1);
/// Between two looks at what has come.
const LOOK: Duration = Duration::from_millis(100);
static SIGN: [u8; 1] = [1];

/// The collective calls that this rank is in, with the time they began at.
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
    /// Until the result is dropped.
    pub(super) fn enter(&self, call: &str) -> Open<'_> {
        let id = self.with(|open| {
            let id = open.iter().map(|c| c.0 + 1).max().unwrap_or(0);
            open.push((id, call.to_owned(), Instant::now()));
            id
        });
        Open { calls: self, id }
    }
    /// A call that has taken longer than it may.
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

/// A thread on a communicator of its own.
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
                // Without it lost ranks would go unnoticed.
                if catch_unwind(AssertUnwindSafe(|| look_on(handle, &calls, silence, &stop)))
                    .is_err()
                {
                    fail(rank, "the thread that watches the others panicked");
                }
            })
            .unwrap_or_else(|e| fail(rank, &format!("could not start a thread: {e}")));
        Self { stopped, thread }
    }
    /// When all ranks are at their end.
    pub(super) fn stop(self) {
        self.stopped.store(true, Ordering::Release);
        // A panic of it ends all ranks.
        let _ = self.thread.join();
    }
}

fn look_on(handle: Handle, calls: &Calls, silence: Duration, stopped: &AtomicBool) {
    let Handle(comm) = handle;
    let (rank, size) = (comm.rank() as usize, comm.size() as usize);
    let others = || (0..size).filter(|&p| p != rank);
    let mut heard = vec![Instant::now(); size];
    let mut sent: Vec<Option<Request<'static, [u8]>>> = (0..size).map(|_| None).collect();
    let mut next = Instant::now();
    let mut looked = Instant::now();
    while !stopped.load(Ordering::Acquire) {
        // A process that was stopped for a while has not listened: others get as long again.
        if looked.elapsed() > silence / 2 {
            heard.fill(Instant::now());
        }
        looked = Instant::now();
        let beat = Instant::now() >= next;
        if beat {
            next = Instant::now() + BEAT;
        }
        for p in others() {
            let peer = comm.process_at_rank(p as i32);
            while peer.immediate_probe().is_some() {
                let mut sign = [0u8; 1];
                peer.receive_into(&mut sign[..]);
                heard[p] = Instant::now();
            }
            sent[p] = sent[p].take().and_then(|request| request.test().err());
            if beat && sent[p].is_none() {
                sent[p] = Some(peer.immediate_send(StaticScope, &SIGN[..]));
            }
            if heard[p].elapsed() > silence && !stopped.load(Ordering::Acquire) {
                fail(rank, &format!("no sign of life from rank {p} for {silence:?}"));
            }
        }
        if let Some(message) = calls.overdue() {
            fail(rank, &message);
        }
        std::thread::sleep(LOOK);
    }
    // All signs that are under way arrive before MPI ends.
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
