//! Partitions graphs: parts are assigned, extracted, written, read and verified, in this order.

pub(crate) mod assign;
mod config;
pub(crate) mod extract;
mod format;
pub(crate) mod part;
pub(crate) mod read;
mod verify;
mod write;

pub use config::{MetisEffort, Objective, PartitionConfig, PartitionMethod};
pub use extract::chunked_graph::ChunkedGraph;
pub use extract::from_ranks::{OwnEdges, OwnNodes, OwnPart};
pub use extract::partitioned_graph::{PartitionedGraph, partition_graph};
pub use extract::size_table::{PartStats, PartitionTable, TypeStats};
pub use extract::step_traffic::{RankPlan, StepPlan, StepTraffic};
pub use part::partition::Partition;
pub use read::parts::{load_partition, load_partition_book};
pub use verify::report::{PartitionReport, verify_partition};
