//! Makes batches from seeds, epoch by epoch (`Loader`).

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::batch::sampler::Sampler;
use crate::batch::seed_order::Traversal;
use crate::batch::seeds::Seeds;
use crate::loading::features::{BatchFeatures, LoadedBatch};
use crate::loading::parts::Parts;
use crate::random::key::SampleKey;
use burn_gnn_graph::internal::setting;

/// Position of a loader; save it with a checkpoint to resume at the next batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderState {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Next batch of the epoch.
    pub batch: usize,
}

/// Prefetches batches on worker threads and returns them in order, with features.
///
/// The book: [mini-batches](https://github.com/burn-gnn/burn-gnn/blob/main/docs/mini-batches.md).
///
/// Batch `i` of an epoch is a function of (seed, epoch, `i`): it does not depend on the number of workers. At most
/// `workers · prefetch` batches wait to be taken. A [`LoaderEpoch`] may be dropped at any moment: its threads end after
/// the batch that they are making. What goes wrong in a worker, a panic included, comes out as an error at the place of
/// its batch, and ends the epoch.
///
/// ```
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::{Loader, NeighborSampler, Seeds};
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?;
/// let seeds = Seeds::nodes(&g, [("_N", [1, 2, 3, 4])])?;
/// let loader = Loader::new(NeighborSampler::new(&g, [2])?, seeds, 3)?.with_seed(7);
/// let sizes = loader.epoch(0).map(|b| Ok(b?.num_seeds())).collect::<Result<Vec<_>, burn_gnn_graph::GraphError>>()?;
/// assert_eq!(sizes, [3, 1]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// It is a Burn `DataLoader` too: each pass over it is the next epoch, from 0 or from
/// [`with_first_epoch`](Self::with_first_epoch) on.
///
/// # Over several processes
/// A sampler over a partitioned graph is [in order](Sampler::IN_ORDER): one thread makes its batches. All processes
/// make the loader with the same settings, begin, take and drop epochs alike, and get as many batches; where one drops
/// an epoch early and others go on, these get an error.
pub struct Loader<S: Sampler, F = ()> {
    pub(super) parts: Parts<S, F>,
    /// Of threads, where they cannot share the sampler; each is used by one epoch at a time.
    pub(super) of_threads: Arc<Mutex<Vec<Arc<S>>>>,
    pub(super) batch_size: usize,
    pub(super) traversal: Traversal,
    pub(super) drop_last: bool,
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) prefetch: usize,
    /// Epoch of the next pass by Burn.
    pub(super) next_epoch: AtomicU64,
}

impl<S: Sampler> Loader<S> {
    /// Shuffled batches of `batch_size` seeds over all processes, by one worker, two batches ahead.
    ///
    /// # Errors
    /// `batch_size` is 0; what the sampler [refuses](Sampler::check).
    pub fn new(sampler: S, seeds: Seeds<S::Seed>, batch_size: usize) -> Result<Self, S::Error> {
        // The sampler of several processes asks them all, so nothing comes before it.
        sampler.check(&seeds)?;
        if batch_size == 0 {
            return Err(setting("batch_size", "at least one seed", "0").into());
        }
        Ok(Self {
            parts: Parts { sampler: Arc::new(sampler), seeds: Arc::new(seeds), features: () },
            of_threads: Arc::default(),
            batch_size,
            traversal: Traversal::Shuffled,
            drop_last: false,
            seed: 0,
            workers: 1,
            prefetch: 2,
            next_epoch: AtomicU64::new(0),
        })
    }
}

impl<S: Sampler, F> Loader<S, F> {
    /// Sets the features and labels that are read with each batch.
    #[must_use]
    pub fn with_features<G: BatchFeatures<S>>(self, features: G) -> Loader<S, G> {
        let Parts { sampler, seeds, .. } = self.parts;
        Loader {
            parts: Parts { sampler, seeds, features },
            of_threads: self.of_threads,
            batch_size: self.batch_size,
            traversal: self.traversal,
            drop_last: self.drop_last,
            seed: self.seed,
            workers: self.workers,
            prefetch: self.prefetch,
            next_epoch: self.next_epoch,
        }
    }
    /// The order of seeds.
    #[must_use]
    pub fn with_traversal(mut self, traversal: Traversal) -> Self {
        self.traversal = traversal;
        self
    }
    /// Leaves out the last batch of an epoch if it has fewer than `batch_size` seeds.
    #[must_use]
    pub fn with_drop_last(mut self) -> Self {
        self.drop_last = true;
        self
    }
    /// Seed of order and samples.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// The epoch of the first pass by Burn; 0 by default. A [`Learner`] that resumes from the checkpoint of epoch `n`,
    /// which Burn counts from 1, has passed over epochs `0..n` of the loader: with `n` it goes on with the orders and
    /// draws of a run that was never interrupted.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use burn_gnn_graph::Graph;
    /// # use burn_gnn_sampling::{Loader, NeighborSampler, Seeds};
    /// # let g = Graph::homogeneous(2, vec![0], vec![1])?;
    /// let checkpoint = 5; // the argument of `SupervisedTraining::checkpoint`
    /// let loader = Loader::new(NeighborSampler::new(&g, [10])?, Seeds::nodes(&g, [("_N", [0, 1])])?, 2)?;
    /// let loader = Arc::new(loader.with_first_epoch(checkpoint));
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// [`Learner`]: https://docs.rs/burn/latest/burn/train/struct.Learner.html
    #[must_use]
    pub fn with_first_epoch(mut self, epoch: u64) -> Self {
        self.next_epoch = AtomicU64::new(epoch);
        self
    }
    /// Threads that make batches, one at most where the sampler is [in order](Sampler::IN_ORDER); with 0 the caller
    /// makes them as it asks for them.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
    /// Batches that each worker makes ahead; with 0, as with no workers, the caller makes them as it asks for them.
    #[must_use]
    pub fn with_prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Batches of an epoch.
    pub fn num_batches(&self) -> usize {
        let n = self.parts.seeds.len();
        if self.drop_last { n / self.batch_size } else { n.div_ceil(self.batch_size) }
    }
    /// What makes the batches.
    pub fn sampler(&self) -> &S {
        &self.parts.sampler
    }
    /// All seeds.
    pub fn seeds(&self) -> &Seeds<S::Seed> {
        &self.parts.seeds
    }
    /// What is read with each batch.
    pub fn features(&self) -> &F {
        &self.parts.features
    }

    /// Threads that make the batches of an epoch, of which `left` are to come.
    pub(super) fn threads(&self, left: usize) -> usize {
        let most = if S::IN_ORDER { 1 } else { usize::MAX };
        if self.prefetch == 0 { 0 } else { self.workers.min(most).min(left) }
    }
}

impl<S: Sampler, F: BatchFeatures<S>> Loader<S, F> {
    /// One batch on the caller's thread: of the seeds at some positions of the concatenated list.
    ///
    /// # Errors
    /// As the batches of an epoch.
    pub fn batch(
        &self,
        positions: &[u32],
        key: SampleKey,
    ) -> Result<LoadedBatch<S::Batch, S::Seed>, S::Error> {
        Ok(self.parts.make(positions, key)?.0)
    }

    /// A copy with other seeds and features; the epoch of Burn's passes goes on.
    #[cfg(feature = "dataloader")]
    pub(super) fn with(&self, seeds: Arc<Seeds<S::Seed>>, features: F) -> Self {
        let next_epoch = AtomicU64::new(self.next_epoch.load(std::sync::atomic::Ordering::Relaxed));
        let parts = Parts { sampler: self.parts.sampler.clone(), seeds, features };
        Self { parts, of_threads: self.of_threads.clone(), next_epoch, ..*self }
    }
}
