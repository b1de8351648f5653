//! Partitions a graph and extracts its parts, in memory and over ranks.

mod chunked_column;
pub(crate) mod chunked_graph;
pub(crate) mod cross_part_edges;
pub(crate) mod feature_columns;
pub(crate) mod from_ranks;
mod part_of_graph;
pub(crate) mod partitioned_graph;
pub(crate) mod size_table;
pub(crate) mod step_traffic;
