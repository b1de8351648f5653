//! The trait of samplers that all ranks run together.

use std::sync::Arc;

use burn_gnn_sampling::Sampler;

use crate::comm::{Communicator, Failure};
use crate::error::DistError;
use crate::graph::DistGraph;

/// A sampler whose batches all ranks sample together. Batch `i` of an epoch is a slice of the shuffled list of all
/// seeds, and each rank gets the batch of its own seeds in the slice. Random numbers have the same keys as on one
/// machine, so the batches of all ranks together are the batch that a loader on one machine returns.
///
/// All ranks get the same number of batches. A batch may be empty on some ranks, which then take part in the step with
/// a weight of zero.
///
/// A rank sampler is a [`Sampler`] that runs [in order](Sampler::IN_ORDER): a loader prefetches batches on one thread,
/// over a separate communicator, while the caller trains. A user-defined rank sampler must forward
/// [`for_thread`](Sampler::for_thread) to [`duplicate`](Self::duplicate) and
/// [`before_batch`](Sampler::before_batch) to [`others_go_on`](Self::others_go_on), and must return its errors on all
/// ranks.
///
/// ```
/// use burn_gnn_dist::{DistError, DistFeatures, DistGraph, DistSampler, PartitionConfig, partition_graph, run_ranks};
/// use burn_gnn_graph::Graph;
/// use burn_gnn_sampling::Loader;
/// let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
/// let parts = partition_graph(&ring, &PartitionConfig::new("ring", 3))?;
/// let own = run_ranks(3, |comm| {
///     let g = DistGraph::from_partition(parts.part(comm.rank())?, comm)?;
///     let (sampler, seeds) = (DistSampler::new(&g, [1, 1])?, g.node_seeds([("_N", [0, 1, 2, 3, 4])])?);
///     let loader = Loader::new(sampler, seeds, 2)?.with_features(DistFeatures::new(&g));
///     assert_eq!(loader.num_batches(), 3); // on all ranks
///     loader.epoch(0).map(|batch| Ok(batch?.num_seeds())).sum::<Result<usize, DistError>>()
/// })?;
/// assert_eq!(own.iter().sum::<usize>(), 5);
/// # Ok::<(), DistError>(())
/// ```
pub trait RankSampler: Sampler<Seed = u64, Error = DistError> + Clone {
    /// The sampled graph, with the communicator of the exchanges.
    fn graph(&self) -> &DistGraph;

    /// Replaces the communicator by another one of the same ranks.
    #[must_use]
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self;

    /// Clones the sampler with a duplicate of its communicator, for use on another thread. Collective.
    ///
    /// # Errors
    /// The communicator cannot be duplicated.
    fn duplicate(&self) -> Result<Self, DistError> {
        Ok(self.clone().with_communicator(self.graph().comm().duplicate("loader")?))
    }

    /// Exchanges before batch number `batch` whether each rank still iterates over its epoch. Collective.
    ///
    /// # Errors
    /// On all ranks: a rank has dropped its epoch.
    fn others_go_on(&self, batch: usize, wanted: bool) -> Result<(), DistError> {
        let all = self.graph().comm().all_gather("next batch", vec![u8::from(!wanted)])?;
        match all.iter().position(|b| b != &[0]) {
            None => Ok(()),
            Some(rank) => Err(Failure {
                rank,
                message: format!(
                    "dropped its epoch before batch {batch}, which other ranks request"
                ),
            }
            .into()),
        }
    }
}

/// The methods of `Sampler` that all rank samplers implement in the same way.
macro_rules! in_order {
    () => {
        const IN_ORDER: bool = true;

        fn for_thread(&self) -> Result<Option<Self>, $crate::error::DistError> {
            $crate::loading::RankSampler::duplicate(self).map(Some)
        }
        fn before_batch(&self, batch: usize, wanted: bool) -> Result<(), $crate::error::DistError> {
            $crate::loading::RankSampler::others_go_on(self, batch, wanted)
        }
    };
}
pub(crate) use in_order;
