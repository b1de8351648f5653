//! A loader: how seeds become batches, epoch after epoch.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};

use super::batches::check_positions;
use super::{BatchMaker, LoaderEpoch};
use crate::error::setting;
use crate::{GraphError, SampleKey, Traversal};

/// Where a loader is: saved with a checkpoint, it goes on with the batch that would have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoaderState {
    /// Epoch, from 0.
    pub epoch: u64,
    /// Next batch of the epoch.
    pub batch: usize,
}

/// Makes batches ahead on threads of its own and hands them out in order.
///
/// Batch `i` of an epoch is a function of (seed, epoch, `i`): it does not depend on the number of workers. At most
/// `workers · prefetch` batches wait to be taken. An [`LoaderEpoch`] may be dropped at any moment: its threads end after the
/// batch that they are making. What goes wrong in a worker, a panic included, comes out as an error at the place of its batch, and
/// ends the epoch.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::{Graph, Loader, NeighborSampler, NodeBatches};
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?;
/// let batches = NodeBatches::new(NeighborSampler::new(&g, [2])?, [("_N", [1, 2, 3, 4])], &Device::flex())?;
/// let loader = Loader::new(batches, 3)?.with_seed(7);
/// let sizes = loader.epoch(0).map(|b| Ok(b?.seeds[0].len())).collect::<Result<Vec<_>, burn_gnn_graph::GraphError>>()?;
/// assert_eq!(sizes, [3, 1]);
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// It is a Burn `DataLoader` too: each pass over it is the next epoch.
pub struct Loader<M: BatchMaker> {
    pub(super) maker: Arc<M>,
    pub(super) batch_size: usize,
    pub(super) traversal: Traversal,
    pub(super) drop_last: bool,
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) prefetch: usize,
    /// Epoch of the next pass by Burn.
    #[cfg_attr(not(feature = "dataloader"), expect(dead_code, reason = "read by Burn's `DataLoader` alone"))]
    pub(super) next_epoch: AtomicU64,
}

impl<M: BatchMaker> Loader<M> {
    /// Shuffled batches of `batch_size` seeds by one worker, two batches ahead.
    ///
    /// # Errors
    /// `batch_size` is 0; 2³² seeds or more.
    pub fn new(maker: M, batch_size: usize) -> Result<Self, GraphError> {
        check_positions(std::iter::once(maker.num_seeds()))?;
        if batch_size == 0 {
            return Err(setting("batch_size", "at least one seed", "0"));
        }
        let (traversal, maker) = (Traversal::Shuffled, Arc::new(maker));
        Ok(Self { maker, batch_size, traversal, drop_last: false, seed: 0, workers: 1, prefetch: 2, next_epoch: AtomicU64::new(0) })
    }
    /// The order of seeds.
    #[must_use]
    pub fn with_traversal(mut self, traversal: Traversal) -> Self {
        self.traversal = traversal;
        self
    }
    /// Whether a last batch of fewer seeds is left out.
    #[must_use]
    pub fn with_drop_last(mut self, drop_last: bool) -> Self {
        self.drop_last = drop_last;
        self
    }
    /// Seed of order and samples.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Threads that make batches; with 0 the caller makes them as it asks for them.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
    /// Batches that each worker makes ahead, at least 1.
    #[must_use]
    pub fn with_prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch.max(1);
        self
    }

    /// Batches of an epoch.
    pub fn num_batches(&self) -> usize {
        let n = self.maker.num_seeds();
        if self.drop_last { n / self.batch_size } else { n.div_ceil(self.batch_size) }
    }
    /// What makes the batches.
    pub fn maker(&self) -> &M {
        &self.maker
    }

    /// All batches of an epoch.
    pub fn epoch(&self, epoch: u64) -> LoaderEpoch<M> {
        self.resume(LoaderState { epoch, batch: 0 })
    }

    /// The batches of an epoch from one of them on, as [`LoaderEpoch::state`] told it.
    pub fn resume(&self, state: LoaderState) -> LoaderEpoch<M> {
        LoaderEpoch::new(self, state)
    }

    /// A copy for another maker; the epoch of Burn's passes goes on.
    #[cfg(feature = "dataloader")]
    pub(super) fn with_maker(&self, maker: M) -> Self {
        Self {
            maker: Arc::new(maker),
            next_epoch: AtomicU64::new(self.next_epoch.load(std::sync::atomic::Ordering::Relaxed)),
            batch_size: self.batch_size,
            traversal: self.traversal,
            drop_last: self.drop_last,
            seed: self.seed,
            workers: self.workers,
            prefetch: self.prefetch,
        }
    }
}

/// How the batches of one epoch are numbered and cut.
pub(super) struct Plan {
    pub(super) positions: Vec<u32>,
    pub(super) batch_size: usize,
    pub(super) num_batches: usize,
    pub(super) seed: u64,
    pub(super) epoch: u64,
}

impl Plan {
    pub(super) fn batch(&self, i: usize) -> (&[u32], SampleKey) {
        let from = i * self.batch_size;
        let step = self.epoch * self.num_batches as u64 + i as u64;
        (&self.positions[from..(from + self.batch_size).min(self.positions.len())], SampleKey::new(self.seed).at(self.epoch, step))
    }
}
