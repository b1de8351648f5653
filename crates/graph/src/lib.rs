//! Graphs with features, and graph transforms, for `burn-gnn`.
//!
//! Read in this order: [`Relation`] (edges between two sets of nodes) and [`Schema`] (node types and canonical edge
//! types), which are defined in `burn-gnn-structure`; [`Frame`] (feature tensors of the nodes or edges of one type);
//! [`Graph`] (relations and frames). Samplers, feature sources and loaders are in `burn-gnn-sampling`, readers of files and
//! data sets in `burn-gnn-data`.
//!
//! Transforms return new graphs with their features: [`batch`], subgraphs ([`Graph::node_subgraph`],
//! [`Graph::khop_in_subgraph`]), edits ([`Graph::add_edges`], [`Graph::remove_nodes`]), [`Graph::to_simple`],
//! [`Graph::line_graph`], [`Graph::metapath_reachable_graph`], [`merge()`], [`knn_graph`]. A [`Subgraph`] also contains the
//! original ids.

#![forbid(unsafe_code)]

mod batching;
mod build;
mod cpu_device;
mod draw;
mod features;
mod graph;
mod query;
mod subgraph;
mod transform;

pub use burn_gnn_structure::{
    Attached, Bytes, CacheUses, Compressed, CountBytes, Derived, DerivedMap, DfsLabel, EdgeKey,
    EdgeName, EdgeReader, EdgeType, FileId, GlobalIds, GraphError, HomoId, IdMap, Ids, NodeIds,
    NodeKey, OriginalIds, Ragged, Relation, RelationStack, Schema, Stream, Texts, TypedId,
    WholeNumber, of_etype, of_ntype, philox4x32,
};

pub use batching::batch::{Batch, batch};
pub use batching::batch_rows::{TopK, TopKRows};
pub use batching::merge::merge;
pub use build::builder::GraphBuilder;
pub use build::points::{Metric, PointOptions, knn_graph, radius_graph};
pub use draw::drawing::{Drawing, DrawingLayout};
pub use features::by_column::ByColumn;
pub use features::column::{Column, ColumnKind};
pub use features::combine::Combine;
pub use features::frame::Frame;
pub use features::row_index::{row_index, row_index_data};
pub use graph::Graph;
pub use query::distances::{UNREACHED, double_radius_label};
pub use query::edges::EdgeList;
pub use query::stats::{DegreeStats, EdgeStats, GraphStats, NodeStats};
pub use subgraph::compact::compact_graphs;
pub use subgraph::derive::Subgraph;
pub use subgraph::induced::Relabel;
pub use subgraph::khop::KHop;
pub use transform::convert::{Homogeneous, to_heterogeneous};
pub use transform::line_graph::Backtracking;
pub use transform::reorder::{EdgeOrder, NodeOrder};
pub use transform::self_loops::{LoopFill, LoopsAt};
pub use transform::to_simple::Simple;

/// Items for the other crates of this workspace, without stability guarantees.
#[doc(hidden)]
pub mod internal {
    pub use burn_gnn_structure::internal::*;

    pub use crate::cpu_device::cpu_device;
}
