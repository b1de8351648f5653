//! Graph structure, typed ids, features and sampling for `burn-gnn`.
//!
//! Read in this order: [`Relation`] (edges between two sets of nodes, COO with CSC and CSR built on
//! first use), [`Schema`] (node types and canonical edge types), [`Graph`] (relations + frames),
//! [`IdMap`] (type-wise ids to global (homogeneous) ids and back). Readers of files and data sets are in `burn-gnn-data`.
//!
//! Graph transforms: [`batch`], subgraphs ([`Graph::node_subgraph`], [`Graph::khop_in_subgraph`] and others around
//! them), edits ([`Graph::add_edges`], [`Graph::remove_nodes`]), [`Graph::to_simple`], [`Graph::line_graph`],
//! [`Graph::metapath_reachable_graph`], [`merge()`], [`knn_graph`]. Each is a new graph: features follow, and a
//! [`Subgraph`] holds the original ids.
//!
//! Samples: [`NeighborSampler`] makes a [`MiniBatch`] of [`Block`]s around seeds; every draw is a function of a
//! [`SampleKey`]. A [`Loader`] makes the batches of any [`Sampler`] ahead, with rows of a [`FeatureSource`] per type.
//!
//! Structure modules are plain Rust; Burn tensors appear in [`Frame`]s only.

#![deny(unsafe_code)]

mod attached;
mod batch;
mod batch_rows;
mod compact;
mod convert;
mod cut;
mod derive;
mod derived;
mod distances;
mod edit;
mod error;
mod features;
#[doc(hidden)]
pub mod files;
mod frame;
mod global_ids;
mod graph;
mod ids;
mod khop;
mod line_graph;
mod loading;
mod memory;
mod merge;
mod metapath;
mod node_ids;
mod original_ids;
#[cfg(feature = "petgraph")]
mod petgraph_graphs;
mod placement;
mod points;
mod prefetch;
mod product;
mod query;
mod ragged;
mod random;
mod relation;
mod reorder;
mod row_index;
mod row_type;
mod sampling;
mod schema;
mod self_loops;
mod simple;
mod stack;
mod subgraph;
mod texts;
mod transform;
mod traversal;
mod words;

pub use attached::Attached;
pub use batch::{Batch, batch};
pub use batch_rows::{TopK, TopKRows};
pub use compact::compact_graphs;
pub use convert::{Homogeneous, to_heterogeneous};
#[doc(hidden)]
pub use cut::{Cut, cut as cut_text, cut_quoted};
pub use derive::Subgraph;
#[doc(hidden)]
pub use derive::check_ids;
pub use derived::{Derived, DerivedMap};
pub use distances::{UNREACHED, double_radius_label};
pub use error::GraphError;
pub use features::*;
pub use frame::{ByColumn, Column, ColumnKind, Combine, Frame};
pub use global_ids::GlobalIds;
pub use graph::{Graph, GraphBuilder};
pub use ids::{HomoId, IdMap, TypedId};
pub use khop::KHop;
pub use line_graph::Backtracking;
pub use loading::*;
#[doc(hidden)]
pub use memory::room;
pub use merge::merge;
pub use node_ids::{FileId, Ids, NodeIds};
pub use original_ids::OriginalIds;
pub use placement::Placement;
pub use points::{Metric, PointOptions, knn_graph, radius_graph};
pub use prefetch::{prefetch, prefetch_at};
pub use query::EdgeList;
pub use ragged::Ragged;
pub use random::{Stream, philox4x32};
#[doc(hidden)]
pub use relation::LayoutArrays;
pub use relation::{Compressed, Relation, WholeNumber};
pub use reorder::{EdgeOrder, NodeOrder};
pub use row_index::{row_index, row_index_data};
pub use sampling::*;
pub use schema::{EdgeKey, EdgeType, NodeKey, Schema, of_etype, of_ntype};
pub use self_loops::{LoopFill, LoopsAt};
pub use simple::Simple;
pub use stack::RelationStack;
pub use subgraph::Relabel;
pub use texts::Texts;
pub use traversal::DfsLabel;
#[doc(hidden)]
pub use words::{SharedWords, Words};
