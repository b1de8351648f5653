//! Defines `Sampler`, the interface between loaders and samplers.

use crate::batch::sampled_batch::SampledBatch;
use crate::batch::seeds::Seeds;
use crate::random::key::SampleKey;
use burn_gnn_graph::GraphError;

/// Makes a batch from some seeds. Implementations sample neighbours of nodes, edges with negatives, or subgraphs, on the
/// CPU, on a GPU or on several ranks.
///
/// A user-defined sampler needs only this `impl`. A [`Loader`](crate::Loader) adds prefetching on worker threads,
/// shuffling, resuming, features, labels and throughput.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_graph::{Graph, GraphError, Relabel, Stream, Subgraph};
/// use burn_gnn_sampling::RowType;
/// use burn_gnn_sampling::{GraphFeatures, Loader, MemoryRows, SampleKey, Sampler, Seeds};
///
/// /// The subgraph of the seeds and as many other nodes, drawn uniformly.
/// struct Crowd(Graph);
///
/// impl Sampler for Crowd {
///     type Seed = u32;
///     type Batch = Subgraph;
///     type Error = GraphError;
///
///     fn sample_batch(&self, seeds: &Seeds, key: SampleKey) -> Result<Subgraph, GraphError> {
///         let mut nodes = seeds.ids()[0].clone();
///         let (draws, all) = (Stream::new(key.seed, "crowd", key.step), self.0.node_counts()[0] as f64);
///         nodes.extend((0..nodes.len() as u64).map(|i| (draws.uniform(i, 0) * all) as u32));
///         nodes.sort_unstable();
///         nodes.dedup();
///         self.0.node_subgraph([("_N", nodes)], Relabel::Yes)
///     }
/// }
///
/// let g = Graph::homogeneous(5, vec![0, 1, 2, 3], vec![1, 2, 3, 4])?;
/// let rows = MemoryRows::new(&[0.0, 0.1, 0.2, 0.3, 0.4], 1, RowType::F32)?;
/// let features = GraphFeatures::new(&g, &Device::flex()).with_nodes("_N", rows)?;
/// let loader = Loader::new(Crowd(g.clone()), Seeds::nodes(&g, [("_N", [1, 2, 3, 4])])?, 2)?.with_workers(2).with_features(features);
/// let mut epoch = loader.epoch(0);
/// let first = epoch.next().expect("a batch")?;
/// assert_eq!(first.x("_N")?.dims(), [first.batch.graph.total_nodes(), 1]);
/// let rest = loader.resume(epoch.state()); // in mid-epoch, after a restart too
/// assert_eq!(rest.count(), 1);
/// # Ok::<(), GraphError>(())
/// ```
///
/// # Repeatability
/// A batch must be a function of the arguments of [`sample_batch`](Self::sample_batch): random draws come from the
/// [`SampleKey`], never from the order of calls. Batches then do not depend on the number of threads.
///
/// # Times
/// If edges have times, [`check`](Self::check) must return an error for seeds without times, so that no batch contains an
/// edge later than its seed: call [`NeighborSampler::check_untimed`](crate::NeighborSampler::check_untimed).
///
/// # Distributed samplers
/// A sampler that communicates with other ranks sets [`IN_ORDER`](Self::IN_ORDER). A loader then makes its batches
/// sequentially on one thread, in the order of the epoch, so that all ranks make the same calls. Such a sampler implements
/// [`for_thread`](Self::for_thread), [`before_batch`](Self::before_batch) and [`own_seeds`](Self::own_seeds), and must
/// return an error on all ranks in the same call. Its other methods may communicate, too: a loader calls `check` on
/// construction and `for_thread` at the start of an epoch.
pub trait Sampler: Send + Sync + Sized + 'static {
    /// Type of a seed: `u32` for nodes or edges of a graph in memory.
    type Seed: Copy + Send + Sync + 'static;
    /// Type of a batch.
    type Batch: SampledBatch;
    /// Type of errors.
    type Error: std::error::Error + From<GraphError> + Send + Sync + 'static;

    /// Whether batches must be made sequentially by one thread, in the order of the epoch.
    const IN_ORDER: bool = false;

    /// Makes the batch of some seeds, as a function of the arguments. Several threads call it concurrently, unless
    /// [`IN_ORDER`](Self::IN_ORDER).
    ///
    /// # Errors
    /// Any error of sampling; the loader returns it to its caller.
    fn sample_batch(
        &self,
        seeds: &Seeds<Self::Seed>,
        key: SampleKey,
    ) -> Result<Self::Batch, Self::Error>;

    /// Validates all seeds, when a loader is constructed.
    ///
    /// # Errors
    /// Seeds that the sampler does not support.
    fn check(&self, _seeds: &Seeds<Self::Seed>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Selects the seeds of a batch that belong to this rank: features and labels are read for these. All seeds by
    /// default.
    fn own_seeds(&self, seeds: Seeds<Self::Seed>, _batch: &Self::Batch) -> Seeds<Self::Seed> {
        seeds
    }

    /// Returns a separate sampler for the worker thread of a loader, if it cannot share this one with the caller's thread.
    /// It must make the same batches.
    ///
    /// # Errors
    /// The sampler cannot be constructed.
    fn for_thread(&self) -> Result<Option<Self>, Self::Error> {
        Ok(None)
    }

    /// Called by the thread of a loader before batch `batch` of an epoch. `wanted` is false if the epoch was dropped on
    /// this rank; an [`IN_ORDER`](Self::IN_ORDER) sampler then gets this last call, so that it can inform other ranks.
    ///
    /// # Errors
    /// Another rank has dropped the epoch.
    fn before_batch(&self, _batch: usize, _wanted: bool) -> Result<(), Self::Error> {
        Ok(())
    }
}
