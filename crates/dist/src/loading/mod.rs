//! Batches over all parts, made ahead of training.

mod batches;
mod epoch;
mod links;

use std::sync::Arc;

use burn_gnn_graph::{LoaderState, SampleKey, Traversal};

use crate::{Communicator, DistError};
pub use batches::{DistLoaded, DistNodeBatches, Presampling};
pub use epoch::{DistEpoch, LoaderTimes};
pub use links::{DistHeteroLinkBatches, DistLinkBatches};

/// Makes this rank's share of a batch. Collective: all ranks make the same batches in the same order.
pub trait DistBatchMaker: Clone + Send + Sync + 'static {
    /// What is made.
    type Batch: Send + 'static;

    /// This rank and the others.
    fn comm(&self) -> &Arc<dyn Communicator>;
    /// The same batches over another communicator of the same ranks.
    #[must_use]
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self;
    /// Positions that an epoch goes through; the same on all ranks.
    fn num_seeds(&self) -> usize;
    /// The batch of the seeds at these positions, the same list on all ranks, as a function of the arguments alone. Times go to `times`.
    ///
    /// # Errors
    /// Whatever keeps the batch from being made; on all ranks.
    fn make(&self, positions: &[u32], key: SampleKey, times: &mut LoaderTimes) -> Result<Self::Batch, DistError>;
}

/// [`Loader`](burn_gnn_graph::Loader) over ranks: batch `i` of an epoch is one slice of one order of all seeds, of which each rank takes
/// the seeds that it owns. Draws are keyed as on one machine, so that the ranks' batches together are the loader's batch there.
///
/// All ranks get the same number of batches, some of which are empty here: such a batch takes part with a weight of zero.
///
/// A thread makes batches ahead on a communicator of its own while the caller trains. Ranks take and drop epochs alike; where one drops
/// an epoch early and others go on, these get an error.
#[derive(Debug)]
pub struct DistLoader<M: DistBatchMaker> {
    maker: M,
    batch_size: usize,
    traversal: Traversal,
    seed: u64,
    prefetch: usize,
    /// That of the thread; made with the first epoch.
    ahead: Option<Arc<dyn Communicator>>,
}

impl<M: DistBatchMaker> DistLoader<M> {
    /// Shuffled batches of `batch_size` seeds over all ranks, two ahead. All ranks give the same settings.
    ///
    /// # Errors
    /// `batch_size` is 0.
    pub fn new(maker: M, batch_size: usize) -> Result<Self, DistError> {
        if batch_size == 0 {
            return Err(DistError::Config { arg: "batch_size", expected: "at least one seed".into(), found: "0".into() });
        }
        Ok(Self { maker, batch_size, traversal: Traversal::Shuffled, seed: 0, prefetch: 2, ahead: None })
    }
    /// The order of seeds.
    #[must_use]
    pub fn with_traversal(mut self, traversal: Traversal) -> Self {
        self.traversal = traversal;
        self
    }
    /// Seed of order and samples.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Batches made ahead; with 0 the caller makes them as it asks for them.
    #[must_use]
    pub fn with_prefetch(mut self, prefetch: usize) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Batches of an epoch.
    pub fn num_batches(&self) -> usize {
        self.maker.num_seeds().div_ceil(self.batch_size)
    }
    /// What makes the batches.
    pub fn maker(&self) -> &M {
        &self.maker
    }

    /// All batches of an epoch. Collective, and so is taking its batches.
    ///
    /// # Errors
    /// Some rank failed; the communicator cannot be duplicated and batches are to be made ahead.
    pub fn epoch(&mut self, epoch: u64) -> Result<DistEpoch<'_, M>, DistError> {
        self.resume(LoaderState { epoch, batch: 0 })
    }
    /// The batches of an epoch from one of them on, as [`DistEpoch::state`] told it. Collective.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn resume(&mut self, state: LoaderState) -> Result<DistEpoch<'_, M>, DistError> {
        let n = self.maker.num_seeds();
        let positions = self.traversal.positions(n, self.seed, state.epoch);
        let plan = Plan { positions, batch_size: self.batch_size, num_batches: self.num_batches(), seed: self.seed, epoch: state.epoch };
        if self.prefetch == 0 {
            return Ok(DistEpoch::new(self.maker.clone(), plan, state.batch, 0));
        }
        let ahead = match &self.ahead {
            Some(comm) => comm.clone(),
            None => self.ahead.insert(self.maker.comm().duplicate("loader")?).clone(),
        };
        Ok(DistEpoch::new(self.maker.clone().with_communicator(ahead), plan, state.batch, self.prefetch))
    }
}

/// How the batches of one epoch are numbered and cut.
pub(crate) struct Plan {
    positions: Vec<u32>,
    batch_size: usize,
    num_batches: usize,
    seed: u64,
    epoch: u64,
}

impl Plan {
    fn batch(&self, i: usize) -> (&[u32], SampleKey) {
        let from = i * self.batch_size;
        let step = self.epoch * self.num_batches as u64 + i as u64;
        (&self.positions[from..(from + self.batch_size).min(self.positions.len())], SampleKey::new(self.seed).at(self.epoch, step))
    }
}
