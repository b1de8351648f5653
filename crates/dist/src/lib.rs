//! Partitioning, communicators and halo exchange for distributed graphs.
//!
//! The chapter on distributed training of the book:
//! <https://github.com/burn-gnn/burn-gnn/blob/main/docs/distributed.md>.
//!
//! Full-graph training, in reading order:
//!
//! 1. [`partition_graph`] assigns nodes to parts and renumbers them. [`PartitionedGraph::write`] writes the parts,
//!    [`verify_partition`] verifies them, and [`load_partition`] reads one. [`PartitionBook`] maps ids to owners.
//!    [`ChunkedGraph`] partitions a graph whose features stay in files.
//! 2. [`run_ranks`] starts ranks, each with a [`Communicator`].
//! 3. [`LocalPartition`] is the part of a rank as a [`GraphView`](burn_gnn_ops::GraphView) for layers. Its source
//!    features come from [`halo_exchange`], which sends gradients back to the owner rank.
//! 4. [`broadcast_module`] copies the parameters of rank 0 to all ranks, [`check_replicas`] compares them, and
//!    [`all_reduce_gradients`] sums their gradients.
//!
//! Mini-batch training:
//!
//! 1. [`DistGraph::open`] opens the parts as one graph. Any rank can read features and structure by type-wise id.
//! 2. [`DistSampler`] samples each hop on the owners of the nodes. A [`Loader`](burn_gnn_sampling::Loader) prefetches
//!    batches, with [`DistFeatures`] and a [`FeatureCache`].
//! 3. [`DistTensor`] and [`DistEmbedding`] distribute rows over their owners. A [`SparseOptimizer`] updates embeddings.
//! 4. [`all_reduce_gradients_with`] sums the gradients of all other parameters, and [`Checkpoint`] saves and resumes a
//!    run.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_gnn_dist::{DistError, LocalPartition, PartitionConfig, partition_graph, run_ranks};
//! use burn_gnn_graph::Graph;
//! use burn_gnn_ops::GraphView;
//!
//! let ring = Graph::homogeneous(6, vec![0, 1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5, 0])?;
//! let parts = partition_graph(&ring, &PartitionConfig::new("ring", 2))?;
//! let device = Device::flex().autodiff();
//! let rows = run_ranks(2, |comm| {
//!     let part = LocalPartition::new(&parts.part(comm.rank())?, comm, &device)?;
//!     let x = Tensor::<2>::ones([part.num_inner(0), 4], &device);
//!     Ok::<_, DistError>(part.src_rows("layer 1", vec![x])[0].dims())
//! })?;
//! assert_eq!(rows, [[4, 4]; 2]); // three own nodes and one neighbour
//! # Ok::<(), DistError>(())
//! ```
//!
//! Rules for code that runs on ranks:
//!
//! * All ranks make the same collective calls in the same order, and call `backward` the same number of times, even a
//!   rank without training nodes.
//! * Each rank creates separate parameters with equal values ([`broadcast_module`], [`broadcast_seed`]).
//! * Code may skip a relation only by counts of the whole graph, not by those of a part.
//! * The loss must depend on every exchange. Burn's `slice` of an empty range and `cat` of empty tensors lose this
//!   dependency in autodiff; `select` and `matmul` keep it.
//! * On NdArray, Burn's matmul does not support matrices without rows. If a rank may own no node of a type, multiply by
//!   `burn_gnn_ops::matmul_rows`, as the layers of `burn-gnn-models` do.

#![deny(unsafe_code)]

mod checkpoint;
mod column;
mod comm;
mod element;
mod embedding;
mod error;
mod exchange;
mod graph;
mod halo;
mod loading;
mod local_partition;
mod partition;
mod partition_book;
mod reduce;
mod replicas;
mod sampling;
mod seed_split;
mod shard;
mod tensor;
mod trainer_rank;

pub use checkpoint::{Checkpoint, RunState};
pub use comm::{Communicator, Failure, Metered, Ranks, Traffic, launch, on_first_rank, run_ranks};
#[cfg(feature = "mpi")]
pub use comm::{MpiRanks, run_mpi};
pub use element::DistElement;
pub use embedding::{DistEmbedding, EmbeddingElement, EmbeddingRows, SparseOptimizer};
pub use error::DistError;
pub use graph::{
    DataSpace, DistGraph, FeatureCache, FeatureCacheStats, FeatureData, InEdges, PartitionPolicy,
    RowCounts,
};
pub use halo::{HaloBackend, HaloCall, HaloPlan, Segment, TypeHalo, halo_exchange};
pub use loading::{DistFeatures, Presampling, RankSampler};
pub use local_partition::LocalPartition;
pub use partition::{
    ChunkedGraph, MetisEffort, Objective, OwnEdges, OwnNodes, OwnPart, PartStats, Partition,
    PartitionConfig, PartitionMethod, PartitionReport, PartitionTable, PartitionedGraph, RankPlan,
    StepPlan, StepTraffic, TypeStats, load_partition, load_partition_book, partition_graph,
    verify_partition,
};
pub use partition_book::{Lookup, PartMetadata, PartitionBook};
pub use reduce::{
    ReduceOptions, all_reduce_gradients, all_reduce_gradients_except, all_reduce_gradients_with,
    all_reduce_scalar,
};
pub use replicas::{broadcast_module, broadcast_seed, check_replicas, check_replicas_except};
pub use sampling::{DistBatch, DistHeteroLinkSampler, DistLinkSampler, DistSampler};
pub use seed_split::{SeedSplit, SplitBy, SplitOf};
pub use shard::{Shard, ShardReader, ShardWriter};
pub use tensor::DistTensor;
