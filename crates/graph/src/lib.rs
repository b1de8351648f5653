//! Graphs with features, and graph transforms, for `burn-gnn`.
//!
//! Read in this order: [`Relation`] (edges between two sets of nodes), [`Schema`] (node types and canonical edge
//! types), which come from `burn-gnn-structure` with the other types that hold no tensor; [`Frame`] (features of the
//! nodes or edges of one type, Burn tensors), [`Graph`] (relations and frames). Samplers, feature sources and loaders
//! are in `burn-gnn-sampling`, readers of files and data sets in `burn-gnn-data`.
//!
//! Graph transforms: [`batch`], subgraphs ([`Graph::node_subgraph`], [`Graph::khop_in_subgraph`] and others around
//! them), edits ([`Graph::add_edges`], [`Graph::remove_nodes`]), [`Graph::to_simple`], [`Graph::line_graph`],
//! [`Graph::metapath_reachable_graph`], [`merge()`], [`knn_graph`]. Each is a new graph: features follow, and a
//! [`Subgraph`] holds the original ids.

#![forbid(unsafe_code)]

mod batch;
mod batch_rows;
mod compact;
mod convert;
mod derive;
mod distances;
mod dot;
mod draw;
mod edit;
mod frame;
mod graph;
mod graph_builder;
mod graph_summary;
mod khop;
mod line_graph;
mod merge;
mod metapath;
#[cfg(feature = "petgraph")]
mod petgraph_graphs;
mod points;
mod product;
mod query;
mod reorder;
mod row_index;
mod self_loops;
mod stats;
mod subgraph;
mod to_simple;
mod transform;

pub use burn_gnn_structure::{
    Attached, Bytes, CacheUses, Compressed, CountBytes, Derived, DerivedMap, DfsLabel, EdgeKey,
    EdgeName, EdgeReader, EdgeType, FileId, GlobalIds, GraphError, HomoId, IdMap, Ids, NodeIds,
    NodeKey, OriginalIds, Ragged, Relation, RelationStack, Schema, Stream, Texts, TypedId,
    WholeNumber, of_etype, of_ntype, philox4x32,
};

pub use batch::{Batch, batch};
pub use batch_rows::{TopK, TopKRows};
pub use compact::compact_graphs;
pub use convert::{Homogeneous, to_heterogeneous};
pub use derive::Subgraph;
pub use distances::{UNREACHED, double_radius_label};
pub use draw::{Drawing, DrawingLayout};
pub use frame::{ByColumn, Column, ColumnKind, Combine, Frame};
pub use graph::Graph;
pub use graph_builder::GraphBuilder;
pub use khop::KHop;
pub use line_graph::Backtracking;
pub use merge::merge;
pub use points::{Metric, PointOptions, knn_graph, radius_graph};
pub use query::EdgeList;
pub use reorder::{EdgeOrder, NodeOrder};
pub use row_index::{row_index, row_index_data};
pub use self_loops::{LoopFill, LoopsAt};
pub use stats::{DegreeStats, EdgeStats, GraphStats, NodeStats};
pub use subgraph::Relabel;
pub use to_simple::Simple;

#[doc(hidden)]
pub use burn_gnn_structure::internal::prefetch;

/// For the other crates of this library alone.
#[doc(hidden)]
pub mod internal {
    pub use burn_gnn_structure::internal::*;
}
