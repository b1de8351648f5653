//! Adapts samplers over all parts to a [`Loader`](burn_gnn_sampling::Loader).

use std::sync::Arc;

use burn_gnn_sampling::Sampler;

use crate::comm::{Communicator, Failure};
use crate::error::DistError;
use crate::graph::DistGraph;

/// A sampler whose batches all ranks make together: batch `i` of an epoch is one slice of one order of all seeds, of
/// which each rank takes the seeds that it owns. Draws are keyed as on one machine, so that the ranks' batches together
/// are the loader's batch there.
///
/// All ranks get the same number of batches, some of which are empty here: such a batch takes part with a weight of
/// zero.
///
/// It is a [`Sampler`] that is [in order](Sampler::IN_ORDER): a loader makes batches ahead on one thread, over its own
/// communicator, while the caller trains. A user-defined one hands [`for_thread`](Sampler::for_thread) and
/// [`before_batch`](Sampler::before_batch) on to [`duplicate`](Self::duplicate) and
/// [`others_go_on`](Self::others_go_on), and agrees upon its errors on all ranks.
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
    /// The graph that is sampled, with the communicator that its exchanges use.
    fn graph(&self) -> &DistGraph;

    /// The same sampler over another communicator of the same ranks.
    #[must_use]
    fn with_communicator(self, comm: Arc<dyn Communicator>) -> Self;

    /// The same sampler over a duplicate of its communicator, for use on another thread. Collective.
    ///
    /// # Errors
    /// The communicator cannot be duplicated.
    fn duplicate(&self) -> Result<Self, DistError> {
        Ok(self.clone().with_communicator(self.graph().comm().duplicate("loader")?))
    }

    /// An error where a rank has dropped its epoch before batch number `batch`, on all ranks in the same call.
    /// Collective.
    ///
    /// # Errors
    /// See above.
    fn others_go_on(&self, batch: usize, wanted: bool) -> Result<(), DistError> {
        let all = self.graph().comm().all_gather("next batch", vec![u8::from(!wanted)])?;
        match all.iter().position(|b| b != &[0]) {
            None => Ok(()),
            Some(rank) => Err(Failure {
                rank,
                message: format!(
                    "dropped its epoch before batch {batch}, which other ranks asked for"
                ),
            }
            .into()),
        }
    }
}

/// What all samplers over ranks do alike.
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
