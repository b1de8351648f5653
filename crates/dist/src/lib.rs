//! Partitioning, communicators and halo exchange for distributed graphs.

mod book;
mod comm;
mod error;
mod halo;
mod local;
mod partition;
mod reduce;

pub use book::PartitionBook;
pub use comm::{Communicator, Failure, Ranks, run_ranks};
pub use error::DistError;
pub use halo::{HaloBackend, HaloCall, HaloPlan, Segment, TypeHalo, halo_exchange};
pub use local::LocalPartition;
pub use partition::{
    PartStats, Partition, PartitionConfig, PartitionMethod, PartitionTable, PartitionedGraph, load_partition, partition_graph,
};
pub use reduce::{all_reduce_gradients, all_reduce_gradients_except, all_reduce_scalar};
