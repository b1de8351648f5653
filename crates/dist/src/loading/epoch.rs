//! One pass over the seeds.

use std::fmt;
use std::marker::PhantomData;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burn_gnn_graph::LoaderState;

use super::{DistBatchMaker, Plan};
use crate::{Communicator, DistError, Failure};

/// Where the time of a loader went, since the epoch began. With batches made ahead, sampling and fetching run beside training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoaderTimes {
    /// Sampling, exchanges included.
    pub sampling: Duration,
    /// Features and labels, exchanges included.
    pub fetching: Duration,
    /// How long the caller waited for batches.
    pub waiting: Duration,
    /// Batches made.
    pub batches: usize,
    /// Own seeds of the batches made.
    pub seeds: usize,
    /// Sampled edges of the batches made.
    pub edges: usize,
}

impl fmt::Display for LoaderTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |d: Duration| d.as_secs_f64();
        let (sampling, fetching, waiting) = (s(self.sampling), s(self.fetching), s(self.waiting));
        let Self { batches, seeds, edges, .. } = self;
        write!(
            f,
            "{batches} batches, {seeds} seeds, {edges} edges: sampling {sampling:.3} s, fetching {fetching:.3} s, waiting {waiting:.3} s"
        )
    }
}

impl AddAssign for LoaderTimes {
    fn add_assign(&mut self, more: Self) {
        self.sampling += more.sampling;
        self.fetching += more.fetching;
        self.waiting += more.waiting;
        self.batches += more.batches;
        self.seeds += more.seeds;
        self.edges += more.edges;
    }
}

type Queue<B> = Receiver<Result<B, DistError>>;

/// The batches of one epoch, in order; see [`DistLoader`](crate::DistLoader). After an error there is no further batch.
pub struct DistEpoch<'a, M: DistBatchMaker> {
    maker: M,
    plan: Arc<Plan>,
    /// None: the caller makes batches.
    queue: Option<Queue<M::Batch>>,
    thread: Option<JoinHandle<()>>,
    next: usize,
    /// Moved to `next` by an error.
    end: usize,
    waiting: Duration,
    times: Arc<Mutex<LoaderTimes>>,
    /// One epoch of a loader at a time: its thread has the one duplicate.
    loader: PhantomData<&'a mut M>,
}

impl<M: DistBatchMaker> DistEpoch<'_, M> {
    pub(super) fn new(maker: M, plan: Plan, first: usize, prefetch: usize) -> Self {
        let (plan, times) = (Arc::new(plan), Arc::<Mutex<LoaderTimes>>::default());
        let end = plan.num_batches;
        let mut new =
            Self { maker, plan, queue: None, thread: None, next: first.min(end), end, waiting: Duration::ZERO, times, loader: PhantomData };
        if prefetch > 0 && new.next < end {
            let (send, receive) = sync_channel(prefetch.min(end - new.next));
            let (maker, plan, times, first) = (new.maker.clone(), new.plan.clone(), new.times.clone(), new.next);
            let work = move || ahead(&maker, &plan, first, &times, &send);
            // Where the system refuses a thread the queue is closed: its first batch is an error.
            new.thread = std::thread::Builder::new().name(format!("loader-of-rank{}", new.maker.comm().rank())).spawn(work).ok();
            new.queue = Some(receive);
        }
        new
    }

    /// The batch that comes next: what [`DistLoader::resume`](crate::DistLoader::resume) goes on with.
    pub fn state(&self) -> LoaderState {
        LoaderState { epoch: self.plan.epoch, batch: self.next }
    }
    /// Where the time went so far.
    pub fn times(&self) -> LoaderTimes {
        let made = *self.times.lock().unwrap_or_else(PoisonError::into_inner);
        LoaderTimes { waiting: self.waiting, ..made }
    }
}

/// Makes batches until the epoch is over or some rank wants no more.
fn ahead<M: DistBatchMaker>(
    maker: &M,
    plan: &Plan,
    first: usize,
    times: &Mutex<LoaderTimes>,
    queue: &SyncSender<Result<M::Batch, DistError>>,
) {
    let mut enough = false;
    for i in first..plan.num_batches {
        let batch = match others_go_on(&**maker.comm(), i, enough) {
            Ok(()) => make(maker, plan, i, times),
            Err(e) => Err(e),
        };
        let is_last = batch.is_err();
        if enough || queue.send(batch).is_err() {
            // This rank's epoch was dropped; the others hear of it before the next batch.
            if enough || is_last {
                return;
            }
            enough = true;
        } else if is_last {
            return;
        }
    }
}

/// An error where a rank has dropped its epoch, on all ranks in the same call. Collective.
fn others_go_on(comm: &dyn Communicator, i: usize, enough: bool) -> Result<(), DistError> {
    let all = comm.all_gather("next batch", vec![u8::from(enough)])?;
    match all.iter().position(|b| b != &[0]) {
        None => Ok(()),
        Some(rank) => Err(Failure { rank, message: format!("dropped its epoch before batch {i}, which other ranks asked for") }.into()),
    }
}

/// The batch, or the error that its making ended in, a panic included.
fn make<M: DistBatchMaker>(maker: &M, plan: &Plan, i: usize, times: &Mutex<LoaderTimes>) -> Result<M::Batch, DistError> {
    let (positions, key) = plan.batch(i);
    let mut own = LoaderTimes { batches: 1, ..LoaderTimes::default() };
    let made = catch_unwind(AssertUnwindSafe(|| maker.make(positions, key, &mut own)));
    *times.lock().unwrap_or_else(PoisonError::into_inner) += own;
    made.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        let message = format!("batch {i} panicked: {}", text.unwrap_or_else(|| "(no message)".into()));
        Err(Failure { rank: maker.comm().rank(), message }.into())
    })
}

impl<M: DistBatchMaker> Iterator for DistEpoch<'_, M> {
    type Item = Result<M::Batch, DistError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let (i, asked) = (self.next, Instant::now());
        let batch = match &self.queue {
            None => make(&self.maker, &self.plan, i, &self.times),
            Some(queue) => queue.recv().unwrap_or_else(|_| {
                let message = format!("batch {i}: the system refused the loader's thread");
                Err(Failure { rank: self.maker.comm().rank(), message }.into())
            }),
        };
        self.waiting += asked.elapsed();
        match &batch {
            Ok(_) => self.next += 1,
            Err(_) => self.end = i,
        }
        Some(batch)
    }
}

impl<M: DistBatchMaker> Drop for DistEpoch<'_, M> {
    /// Waits for the thread, which makes one batch at most until then. Not where the rank panics: other ranks wait for it then, and the
    /// thread for them.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take().filter(|_| !std::thread::panicking()) {
            // Panics were caught where they happened.
            let _ = thread.join();
        }
    }
}
