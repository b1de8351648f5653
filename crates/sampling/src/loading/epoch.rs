//! Defines `LoaderEpoch`: makes the batches of one epoch on worker threads, and returns them in order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::batch::sampler::Sampler;
use crate::loading::features::{BatchFeatures, LoadedBatch};
use crate::loading::loader::{Loader, LoaderState};
use crate::loading::parts::Made;
use crate::loading::parts::Parts;
use crate::loading::throughput::Throughput;
use crate::random::key::SampleKey;
use burn_gnn_files::internal::Progress;
use burn_gnn_graph::GraphError;

/// Iterator over the batches of one epoch, in order; see [`Loader`].
///
/// An error ends the iteration.
pub struct LoaderEpoch<S: Sampler, F: BatchFeatures<S>> {
    work: Arc<Work<S, F>>,
    /// Queue of each worker thread: batch `first + i` is in queue `i % queues.len()`. Empty if the caller makes batches.
    queues: Vec<Receiver<Made<S>>>,
    threads: Vec<JoinHandle<()>>,
    /// Where to return the separate sampler of the worker thread, if it has one.
    of_threads: Option<Arc<Mutex<Vec<Arc<S>>>>>,
    /// Error of [`Sampler::for_thread`], returned as the first batch.
    failed: Option<S::Error>,
    first: usize,
    next: usize,
    /// Number of batches; set to `next` by an error.
    end: usize,
    begin: Instant,
    throughput: Throughput,
    progress: Progress,
}

/// The work of the threads of one epoch.
struct Work<S: Sampler, F> {
    parts: Parts<S, F>,
    positions: Vec<u32>,
    batch_size: usize,
    num_batches: usize,
    seed: u64,
    epoch: u64,
}

impl<S: Sampler, F: BatchFeatures<S>> Work<S, F> {
    fn positions(&self, i: usize) -> &[u32] {
        let from = i * self.batch_size;
        &self.positions[from..(from + self.batch_size).min(self.positions.len())]
    }

    /// Makes a batch; a panic becomes an error.
    fn make(&self, i: usize) -> Made<S> {
        // Steps may wrap around for epochs near `u64::MAX`; keys still differ, as they contain the epoch.
        let step = self.epoch.wrapping_mul(self.num_batches as u64).wrapping_add(i as u64);
        let key = SampleKey::new(self.seed).at(self.epoch, step);
        let make = || self.parts.make(self.positions(i), key);
        catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
            Err(self.lost(i, text.unwrap_or_else(|| "a panic".into())))
        })
    }

    fn lost(&self, i: usize, message: String) -> S::Error {
        GraphError::Worker { epoch: self.epoch, batch: i, message }.into()
    }

    /// Makes batches until one fails, or until the epoch is dropped on this or another rank.
    fn run(&self, turns: impl Iterator<Item = usize>, queue: &SyncSender<Made<S>>) {
        let mut wanted = true;
        for i in turns {
            let ready = self.parts.sampler.before_batch(i, wanted);
            if !wanted {
                return;
            }
            let batch = ready.and_then(|()| self.make(i));
            let failed = batch.is_err();
            // Sending fails once the epoch is dropped; `before_batch` informs other ranks before the next batch.
            wanted = queue.send(batch).is_ok();
            if failed || !(wanted || S::IN_ORDER) {
                return;
            }
        }
    }
}

impl<S: Sampler, F: BatchFeatures<S>> LoaderEpoch<S, F> {
    pub(super) fn new(loader: &Loader<S, F>, state: LoaderState) -> Self {
        let (epoch, end) = (state.epoch, loader.num_batches());
        let first = state.batch.min(end);
        let mut workers = loader.threads(end - first);
        let (mut sampler, mut of_threads, mut failed) = (loader.parts.sampler.clone(), None, None);
        if workers > 0 {
            match thread_sampler(loader) {
                Ok(Some(own)) => (sampler, of_threads) = (own, Some(loader.of_threads.clone())),
                Ok(None) => {}
                Err(e) => (workers, failed) = (0, Some(e)),
            }
        }
        let work = Arc::new(Work {
            parts: Parts { sampler, ..loader.parts.clone() },
            positions: loader.traversal.positions(loader.parts.seeds.len(), loader.seed, epoch),
            batch_size: loader.batch_size,
            num_batches: end,
            seed: loader.seed,
            epoch,
        });
        let mut new = Self {
            work,
            queues: vec![],
            threads: vec![],
            of_threads,
            failed,
            first,
            next: first,
            end,
            begin: Instant::now(),
            throughput: Throughput::default(),
            progress: Progress::hidden(),
        };
        for worker in 0..workers {
            let work = new.work.clone();
            let turns = (first + worker..end).step_by(workers);
            // The queue bounds the number of batches that wait.
            let (send, receive) = sync_channel(loader.prefetch.min(turns.len()));
            let run = move || work.run(turns, &send);
            // If the thread cannot be spawned, its queue is closed, and its first batch is an error.
            new.threads
                .extend(std::thread::Builder::new().name(format!("loader-{worker}")).spawn(run));
            new.queues.push(receive);
        }
        new
    }

    /// Shows a progress bar labelled `what`, with the number of batches, their rate and the remaining time, until the epoch
    /// is dropped. Shows nothing if standard error is not a terminal.
    ///
    /// ```
    /// # use burn_gnn_graph::Graph;
    /// # use burn_gnn_sampling::{Loader, NeighborSampler, Seeds};
    /// # let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?;
    /// # let loader = Loader::new(NeighborSampler::new(&g, [2])?, Seeds::nodes(&g, [("_N", [1, 2, 3, 4])])?, 3)?;
    /// for batch in loader.epoch(0).with_progress("epoch 1") {
    ///     let batch = batch?;
    ///     // train on it
    /// #   assert!(batch.num_seeds() > 0);
    /// }
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    #[must_use]
    pub fn with_progress(mut self, what: &str) -> Self {
        self.progress = Progress::steps(true, what, "batches", (self.end - self.next) as u64);
        self
    }
    /// Position of the next batch, for [`Loader::resume`].
    pub fn state(&self) -> LoaderState {
        LoaderState { epoch: self.work.epoch, batch: self.next }
    }
    /// Number of seeds in the batches returned so far, and in the epoch.
    pub fn progress(&self) -> (usize, usize) {
        let seeds =
            |batches: usize| (batches * self.work.batch_size).min(self.work.positions.len());
        (seeds(self.next), seeds(self.work.num_batches))
    }
    /// Throughput so far.
    pub fn throughput(&self) -> Throughput {
        Throughput { elapsed: self.begin.elapsed(), ..self.throughput }
    }
}

/// The separate sampler of the worker thread, if it needs one: an unused one of an earlier epoch, or a new one.
fn thread_sampler<S: Sampler, F>(loader: &Loader<S, F>) -> Result<Option<Arc<S>>, S::Error> {
    let free = loader.of_threads.lock().unwrap_or_else(PoisonError::into_inner).pop();
    match free {
        Some(sampler) => Ok(Some(sampler)),
        None => Ok(loader.parts.sampler.for_thread()?.map(Arc::new)),
    }
}

impl<S: Sampler, F: BatchFeatures<S>> Iterator for LoaderEpoch<S, F> {
    type Item = Result<LoadedBatch<S::Batch, S::Seed>, S::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let i = self.next;
        let asked = Instant::now();
        let batch = match (self.failed.take(), self.queues.len()) {
            (Some(e), _) => Err(e),
            (None, 0) => self.work.make(i),
            (None, n) => {
                let _span = tracing::debug_span!("batch_wait").entered();
                let received = self.queues[(i - self.first) % n].recv();
                received.unwrap_or_else(|_| {
                    Err(self.work.lost(i, "its worker thread could not be spawned".into()))
                })
            }
        };
        match batch {
            Ok((batch, of_batch)) => {
                self.next += 1;
                self.progress.inc(1);
                self.throughput += Throughput { waited: asked.elapsed(), ..of_batch };
                Some(Ok(batch))
            }
            Err(e) => {
                self.end = i;
                Some(Err(e))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.end.saturating_sub(self.next)))
    }
}

impl<S: Sampler, F: BatchFeatures<S>> Drop for LoaderEpoch<S, F> {
    /// Closes the queues and joins the threads, each of which finishes at most one batch. Does not join while this thread
    /// panics if the sampler communicates: other ranks may wait for this one, and the worker thread for them.
    fn drop(&mut self) {
        self.queues.clear();
        if S::IN_ORDER && std::thread::panicking() {
            return;
        }
        for thread in self.threads.drain(..) {
            // The thread has caught its panics.
            let _ = thread.join();
        }
        if let Some(of_threads) = &self.of_threads {
            of_threads
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.work.parts.sampler.clone());
        }
    }
}

impl<S: Sampler, F: BatchFeatures<S>> Loader<S, F> {
    /// Starts an epoch.
    pub fn epoch(&self, epoch: u64) -> LoaderEpoch<S, F> {
        self.resume(LoaderState { epoch, batch: 0 })
    }

    /// Resumes an epoch at a position that [`LoaderEpoch::state`] returned.
    pub fn resume(&self, state: LoaderState) -> LoaderEpoch<S, F> {
        LoaderEpoch::new(self, state)
    }
}
