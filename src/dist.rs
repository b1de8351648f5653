//! Partitioning, ranks, distributed graphs, embeddings and checkpoints.
//!
//! [`ranks`](crate::ranks) trains models on partitions. The [chapter on distributed
//! training](https://github.com/burn-gnn/burn-gnn/blob/main/docs/distributed.md) explains the terms.
//!
//! | partitioning | description |
//! | --- | --- |
//! | [`partition_graph`] ([`PartitionConfig`], [`PartitionMethod`]), [`PartitionedGraph`] | METIS, LDG, Fennel, random |
//! | [`load_partition`], [`verify_partition`], [`Partition`] | files of parts |
//! | [`PartitionBook`] | owners of nodes and edges; numberings |
//! | [`ChunkedGraph`] | partitioning with features left in files |
//!
//! ![A graph in three parts](https://raw.githubusercontent.com/burn-gnn/burn-gnn/main/docs/img/partition.svg)
//!
//! | ranks | description |
//! | --- | --- |
//! | [`run_ranks`], [`launch`], `run_mpi` (feature `mpi`) | threads; threads or processes; processes |
//! | [`Communicator`], [`Metered`], [`Failure`] | collective calls |
//! | [`broadcast_module`], [`broadcast_seed`], [`check_replicas`], [`check_replicas_except`] | equal models on all ranks |
//! | [`all_reduce_gradients`], [`all_reduce_gradients_with`], [`all_reduce_scalar`] | sums over ranks |
//! | [`Checkpoint`], [`RunState`] | stop and resume |
//!
//! | full-graph training | description |
//! | --- | --- |
//! | [`LocalPartition`] | a part as a `GraphView` for layers |
//! | [`halo_exchange`] | features of halo nodes, with gradients |
//!
//! | training by mini-batches | description |
//! | --- | --- |
//! | [`DistGraph`] | structure and features by id, on any rank |
//! | [`DistSampler`], [`DistLinkSampler`], [`DistHeteroLinkSampler`] | samplers for a [`Loader`](crate::sampling::Loader) |
//! | [`DistFeatures`], [`FeatureCache`] | features in batches |
//! | [`DistTensor`], [`DistEmbedding`] ([`SparseOptimizer`]) | rows that ranks own, constant or learned |

pub use burn_gnn_dist::*;
