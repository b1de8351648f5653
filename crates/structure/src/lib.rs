//! The structure of graphs for `burn-gnn`: what needs neither tensors nor files.
//!
//! Read in this order: [`Relation`] (edges between two sets of nodes, COO with CSC and CSR built on first use),
//! [`Schema`] (node types and canonical edge types), [`IdMap`] (type-wise ids to global (homogeneous) ids and back).
//! Graphs with features are in `burn-gnn-graph`, which exports all of this.
//!
//! What is derived from a relation is made once and kept with it: [`Derived`], [`Attached`]. Its memory is counted
//! ([`Relation::derived_bytes`]) and can be freed ([`Relation::clear_derived`]).

#![deny(unsafe_code)]

mod attached;
mod bytes;
mod counted;
mod derived;
mod derived_map;
mod error;
mod global_ids;
mod huge_pages;
mod ids;
mod memory;
mod node_ids;
mod or_panic;
mod original_ids;
mod prefetch;
mod ragged;
mod random;
mod relation;
mod relation_stack;
mod schema;
mod shared_array;
mod texts;
mod traversal;

pub use attached::Attached;
pub use bytes::{Bytes, CountBytes};
pub use derived::Derived;
pub use derived_map::{CacheUses, DerivedMap};
pub use error::GraphError;
pub use global_ids::GlobalIds;
pub use ids::{HomoId, IdMap, TypedId};
pub use node_ids::{FileId, Ids, NodeIds};
pub use original_ids::OriginalIds;
pub use ragged::Ragged;
pub use random::{Stream, philox4x32};
pub use relation::{Compressed, EdgeReader, Relation, WholeNumber};
pub use relation_stack::RelationStack;
pub use schema::{EdgeKey, EdgeName, EdgeType, NodeKey, Schema, of_etype, of_ntype};
pub use texts::Texts;
pub use traversal::DfsLabel;

/// For the other crates of this library alone.
#[doc(hidden)]
pub mod internal {
    pub use crate::bytes::readable_bytes;
    pub use crate::counted::{counted, noun};
    pub use crate::debug_is_message;
    pub use crate::error::UNNAMED;
    pub use crate::error::setting;
    pub use crate::huge_pages::{HUGE, huge_room};
    pub use crate::memory::{filled, reserve, room};
    pub use crate::or_panic::OrPanic;
    pub use crate::prefetch::{Cache, prefetch, prefetch_at, prefetch_to};
    pub use crate::relation::checks::{
        check_counts, check_id, check_ids, check_len, check_limit, check_nodes,
    };
    pub use crate::relation::{LIMIT, LayoutArrays, by_group, scan};
    pub use crate::schema::{etype_number, ntype_number};
    pub use crate::shared_array::{SharedU32Array, U32Array};
}
