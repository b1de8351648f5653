//! Presents a partitioned graph as one graph, with features and structure from any rank.

mod cache;
mod data;
mod directory;
mod dist_graph;
mod fetch;
mod open;
mod original_ids;
mod own_rows;
mod owners;
mod policies;
mod policy;
mod query;
mod registry;
mod row_bytes;

pub use cache::{FeatureCache, FeatureCacheStats};
pub(crate) use data::WantedRows;
pub use data::{DataSpace, FeatureData};
pub use dist_graph::DistGraph;
pub use fetch::RowCounts;
pub(crate) use fetch::{Counters, Wanted, fetch_one};
pub(crate) use own_rows::{ChangingRows, OwnRows};
pub(crate) use owners::Owners;
pub use policy::PartitionPolicy;
pub use query::InEdges;
