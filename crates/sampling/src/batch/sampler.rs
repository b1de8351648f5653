//! Defines `Sampler`, the interface between loaders and samplers.

use crate::batch::sampled_batch::SampledBatch;
use crate::batch::seeds::Seeds;
use crate::random::key::SampleKey;
use burn_gnn_graph::GraphError;

/// Makes batches of seeds: of the neighbours of nodes, of edges with negatives, of parts of a graph, on a device, over
/// many machines.
///
/// A user-defined sampler needs this one `impl`; a [`Loader`](crate::Loader) adds prefetching on several threads, seed
/// orders, resuming, features, labels and throughput.
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
/// A batch is a function of the arguments of [`sample_batch`](Self::sample_batch) alone: draws come from the
/// [`SampleKey`], never from the order of calls. So it does not depend on the number of threads.
///
/// # Times
/// Where edges have times, a sampler must refuse seeds without a time in [`check`](Self::check), so that no batch holds
/// an edge later than its seed: [`NeighborSampler::check_untimed`](crate::NeighborSampler::check_untimed) does.
///
/// # Distributed samplers
/// A sampler that talks to other processes while it makes a batch sets [`IN_ORDER`](Self::IN_ORDER): a loader then
/// makes its batches one after the other on one thread, in the order of the epoch, so that all processes make the same
/// calls. What the sampler adds is in [`for_thread`](Self::for_thread), [`before_batch`](Self::before_batch) and
/// [`own_seeds`](Self::own_seeds). Its errors must reach all processes in the same call. In the other methods it may
/// talk to them as well: a loader calls `check` when it is made and `for_thread` when an epoch begins.
pub trait Sampler: Send + Sync + Sized + 'static {
    /// A seed: `u32` where seeds are nodes or edges of a graph in memory.
    type Seed: Copy + Send + Sync + 'static;
    /// What is made of some seeds.
    type Batch: SampledBatch;
    /// What keeps a batch from being made.
    type Error: std::error::Error + From<GraphError> + Send + Sync + 'static;

    /// Whether batches must be made one after the other, in the order of the epoch, by one thread.
    const IN_ORDER: bool = false;

    /// The batch of some seeds, as a function of the arguments alone. Called by several threads at once, unless
    /// [`IN_ORDER`](Self::IN_ORDER).
    ///
    /// # Errors
    /// Whatever keeps the batch from being made; the loader hands it to its caller.
    fn sample_batch(
        &self,
        seeds: &Seeds<Self::Seed>,
        key: SampleKey,
    ) -> Result<Self::Batch, Self::Error>;

    /// Refuses seeds that the sampler cannot make batches of: all of them, when a loader is made.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self, _seeds: &Seeds<Self::Seed>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Those of the seeds of a batch that belong to this process, and to which features and labels are read; all by
    /// default.
    fn own_seeds(&self, seeds: Seeds<Self::Seed>, _batch: &Self::Batch) -> Seeds<Self::Seed> {
        seeds
    }

    /// A sampler for the threads of a loader that makes the same batches, where they cannot share this one with the
    /// caller's thread.
    ///
    /// # Errors
    /// What keeps it from being made.
    fn for_thread(&self) -> Result<Option<Self>, Self::Error> {
        Ok(None)
    }

    /// Called by the thread of a loader before it makes batch number `batch` of an epoch: whether it is still `wanted`
    /// here. A loader whose epoch was dropped makes this one call more, if the sampler is [`IN_ORDER`](Self::IN_ORDER).
    ///
    /// # Errors
    /// It is not wanted in another process.
    fn before_batch(&self, _batch: usize, _wanted: bool) -> Result<(), Self::Error> {
        Ok(())
    }
}
