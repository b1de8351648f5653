//! Defines `Loader` and its settings.

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
    /// Epoch, counted from 0.
    pub epoch: u64,
    /// Number of the next batch of the epoch.
    pub batch: usize,
}

/// Prefetches batches on worker threads and returns them in order, with features.
///
/// The book: [mini-batches](https://github.com/burn-gnn/burn-gnn/blob/main/docs/mini-batches.md).
///
/// Batch `i` of an epoch is a function of (seed, epoch, `i`), independent of the number of workers. At most
/// `workers · prefetch` finished batches wait to be taken. A [`LoaderEpoch`](crate::LoaderEpoch) can be dropped at any
/// time; its threads end after their current batch. An error or panic of a worker is returned in place of its batch and
/// ends the epoch.
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
/// A loader is also a Burn `DataLoader` (feature `dataloader`): each iteration is the next epoch, starting from
/// [`with_first_epoch`](Self::with_first_epoch).
///
/// # Distributed loading
/// A sampler of a partitioned graph is [in order](Sampler::IN_ORDER): one thread makes its batches. All ranks must use the
/// same settings, and must start, iterate and drop epochs alike; they get the same number of batches. If one rank drops an
/// epoch early, the others get an error.
pub struct Loader<S: Sampler, F = ()> {
    pub(super) parts: Parts<S, F>,
    /// Unused separate samplers of worker threads; each is used by one epoch at a time.
    pub(super) of_threads: Arc<Mutex<Vec<Arc<S>>>>,
    pub(super) batch_size: usize,
    pub(super) traversal: Traversal,
    pub(super) drop_last: bool,
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) prefetch: usize,
    /// Epoch of the next iteration by Burn.
    pub(super) next_epoch: AtomicU64,
}

impl<S: Sampler> Loader<S> {
    /// A loader of shuffled batches of `batch_size` seeds (over all ranks), with one worker thread that prefetches two
    /// batches.
    ///
    /// # Errors
    /// `batch_size` is 0; errors of [`Sampler::check`].
    pub fn new(sampler: S, seeds: Seeds<S::Seed>, batch_size: usize) -> Result<Self, S::Error> {
        // First, because a distributed sampler communicates in `check`: all ranks must reach it.
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
    /// Sets the features and labels to read with each batch.
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
    /// Sets the order of seeds; [`Traversal::Shuffled`] by default.
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
    /// Sets the random seed of shuffling and sampling; 0 by default.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Sets the epoch of the first iteration by Burn; 0 by default. A [`Learner`] that resumes from the checkpoint of epoch
    /// `n` (Burn counts from 1) has consumed epochs `0..n` of the loader. With `n`, it continues with the orders and draws
    /// of an uninterrupted run.
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
    /// Sets the number of worker threads; 1 by default, and at most 1 for an [in-order](Sampler::IN_ORDER) sampler. With 0,
    /// the calling thread makes each batch on demand.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
    /// Sets the number of batches that each worker prefetches; 2 by default. With 0, the calling thread makes each batch on
    /// demand.
    #[must_use]
    pub fn with_prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Number of batches of an epoch.
    pub fn num_batches(&self) -> usize {
        let n = self.parts.seeds.len();
        if self.drop_last { n / self.batch_size } else { n.div_ceil(self.batch_size) }
    }
    /// The sampler.
    pub fn sampler(&self) -> &S {
        &self.parts.sampler
    }
    /// All seeds.
    pub fn seeds(&self) -> &Seeds<S::Seed> {
        &self.parts.seeds
    }
    /// The features and labels that are read with each batch.
    pub fn features(&self) -> &F {
        &self.parts.features
    }

    /// Number of worker threads for `left` batches.
    pub(super) fn threads(&self, left: usize) -> usize {
        let most = if S::IN_ORDER { 1 } else { usize::MAX };
        if self.prefetch == 0 { 0 } else { self.workers.min(most).min(left) }
    }
}

impl<S: Sampler, F: BatchFeatures<S>> Loader<S, F> {
    /// Makes one batch on the calling thread, of the seeds at these positions of the concatenated list.
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

    /// A copy with other seeds and features, at the same epoch of Burn's iterations.
    #[cfg(feature = "dataloader")]
    pub(super) fn with(&self, seeds: Arc<Seeds<S::Seed>>, features: F) -> Self {
        let next_epoch = AtomicU64::new(self.next_epoch.load(std::sync::atomic::Ordering::Relaxed));
        let parts = Parts { sampler: self.parts.sampler.clone(), seeds, features };
        Self { parts, of_threads: self.of_threads.clone(), next_epoch, ..*self }
    }
}
