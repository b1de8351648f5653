//! Graph structure, typed ids, features and data sources for `burn-gnn`.
//!
//! Read in this order: [`Relation`] (edges between two sets of nodes, COO with CSC and CSR built on
//! first use), [`Schema`] (node types and canonical edge types), [`Graph`] (relations + frames),
//! [`IdMap`] (type-wise ids to one joint numbering and back), then [`io`].
//!
//! Structure modules are plain Rust; Burn tensors appear in [`Frame`]s only.

mod convert;
mod error;
mod frame;
mod graph;
mod ids;
pub mod io;
mod relation;
mod schema;
mod sorted;
mod stack;
mod transform;

pub use convert::{Homogeneous, to_heterogeneous};
pub use error::GraphError;
pub use frame::{Column, ColumnKind, Frame};
pub use graph::{Graph, GraphBuilder};
pub use ids::{HomoId, IdMap, TypedId};
pub use io::{Dataset, Features, Split, karate_club, load_dataset};
pub use relation::{Compressed, Relation};
pub use schema::{EdgeKey, EdgeType, Schema};
pub use stack::RelationStack;
