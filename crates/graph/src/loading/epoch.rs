//! One pass over the seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::loader::Plan;
use super::{BatchMaker, Loader, LoaderState, Throughput};
use crate::GraphError;

/// The batches of one epoch, in order; see [`Loader`].
///
/// After an error there is no further batch.
pub struct LoaderEpoch<M: BatchMaker> {
    maker: Arc<M>,
    plan: Arc<Plan>,
    /// The batch after `first` by `i` comes from queue `i % queues`. None: the caller makes them.
    queues: Vec<Receiver<Result<M::Batch, GraphError>>>,
    threads: Vec<JoinHandle<()>>,
    first: usize,
    next: usize,
    /// Moved to `next` by an error.
    end: usize,
    begin: Instant,
    throughput: Throughput,
}

impl<M: BatchMaker> LoaderEpoch<M> {
    pub(super) fn new(loader: &Loader<M>, state: LoaderState) -> Self {
        let (epoch, end) = (state.epoch, loader.num_batches());
        let positions = loader.traversal.positions(loader.maker.num_seeds(), loader.seed, epoch);
        let plan = Arc::new(Plan { positions, batch_size: loader.batch_size, num_batches: end, seed: loader.seed, epoch });
        let (maker, first) = (loader.maker.clone(), state.batch.min(end));
        let (begin, throughput) = (Instant::now(), Throughput::default());
        let mut new = Self { maker, plan, queues: vec![], threads: vec![], first, next: first, end, begin, throughput };
        let workers = loader.workers.min(end - first);
        for worker in 0..workers {
            let (maker, plan) = (new.maker.clone(), new.plan.clone());
            let turns = (first + worker..end).step_by(workers);
            // A queue has room for all that it may hold from the start.
            let (send, receive) = sync_channel(loader.prefetch.min(turns.len()));
            let work = move || work(&*maker, &plan, turns, &send);
            // Where the system refuses a thread the queue is closed: its first batch is an error.
            new.threads.extend(std::thread::Builder::new().name(format!("loader-{worker}")).spawn(work));
            new.queues.push(receive);
        }
        new
    }

    /// The batch that comes next: what [`Loader::resume`] goes on with.
    pub fn state(&self) -> LoaderState {
        LoaderState { epoch: self.plan.epoch, batch: self.next }
    }
    /// Seeds of the batches taken and of all of the epoch.
    pub fn progress(&self) -> (usize, usize) {
        let seeds = |batches: usize| (batches * self.plan.batch_size).min(self.plan.positions.len());
        (seeds(self.next), seeds(self.plan.num_batches))
    }
    /// How fast batches came so far.
    pub fn throughput(&self) -> Throughput {
        Throughput { elapsed: self.begin.elapsed(), ..self.throughput }
    }
}

fn work<M: BatchMaker>(maker: &M, plan: &Plan, turns: impl Iterator<Item = usize>, queue: &SyncSender<Result<M::Batch, GraphError>>) {
    for i in turns {
        let batch = make(maker, plan, i);
        let is_last = batch.is_err();
        // Nobody listens any more once the epoch is dropped.
        if queue.send(batch).is_err() || is_last {
            return;
        }
    }
}

/// The batch, or the error that its making ended in, a panic included.
fn make<M: BatchMaker>(maker: &M, plan: &Plan, i: usize) -> Result<M::Batch, GraphError> {
    let (positions, key) = plan.batch(i);
    catch_unwind(AssertUnwindSafe(|| maker.make(positions, key))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        Err(GraphError::Worker { epoch: plan.epoch, batch: i, message: text.unwrap_or_else(|| "a panic".into()) })
    })
}

impl<M: BatchMaker> Iterator for LoaderEpoch<M> {
    type Item = Result<M::Batch, GraphError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let i = self.next;
        let asked = Instant::now();
        let batch = match self.queues.len() {
            0 => make(&*self.maker, &self.plan, i),
            n => self.queues[(i - self.first) % n].recv().unwrap_or_else(|_| {
                let message = "the system refused its thread".into();
                Err(GraphError::Worker { epoch: self.plan.epoch, batch: i, message })
            }),
        };
        match &batch {
            Ok(batch) => {
                self.next += 1;
                let t = &mut self.throughput;
                t.batches += 1;
                t.seeds += self.plan.batch(i).0.len();
                t.edges += M::edges(batch);
                t.bytes += M::bytes(batch);
                t.waited += asked.elapsed();
            }
            Err(_) => self.end = i,
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.end.saturating_sub(self.next)))
    }
}

impl<M: BatchMaker> Drop for LoaderEpoch<M> {
    /// Closes the queues and waits for the threads, each of which makes one batch at most until then.
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // Panics were caught where they happened.
            let _ = thread.join();
        }
    }
}

/// A time that never divides by 0.
pub(super) fn seconds(t: Duration) -> f64 {
    t.as_secs_f64().max(1e-9)
}
