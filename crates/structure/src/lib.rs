//! Graph structure for `burn-gnn`, without tensors and without files.
//!
//! Start with these types: [`Relation`] (edges between two sets of nodes: COO, with CSC and CSR built on first use),
//! [`Schema`] (node types and canonical edge types) and [`IdMap`] (converts between type-wise and global ids). Graphs
//! with features are in `burn-gnn-graph`, which re-exports this crate.
//!
//! Data that is derived from a relation is computed once and cached with it, in a [`Derived`] or an [`Attached`].
//! [`Relation::derived_bytes`] reports its memory, and [`Relation::clear_derived`] frees it.

#![deny(unsafe_code)]

mod arrays;
mod derived;
mod error;
mod ids;
mod memory;
mod random;
mod relation;
mod schema;
mod traversal;

pub use arrays::{Ragged, Texts};
pub use derived::{Attached, CacheUses, Derived, DerivedMap};
pub use error::GraphError;
pub use ids::{FileId, GlobalIds, HomoId, IdMap, Ids, NodeIds, OriginalIds, TypedId};
pub use memory::bytes::{Bytes, CountBytes};
pub use random::{Stream, philox4x32};
pub use relation::{Compressed, EdgeReader, Relation, RelationStack, WholeNumber};
pub use schema::{EdgeKey, EdgeName, EdgeType, NodeKey, Schema, of_etype, of_ntype};
pub use traversal::DfsLabel;

/// Items for the other crates of this library; they may change in any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::arrays::shared_array::{SharedU32Array, U32Array};
    pub use crate::debug_is_message;
    pub use crate::error::count_noun::{count_noun, noun};
    pub use crate::error::graph_error::{UNNAMED, setting};
    pub use crate::error::or_panic::OrPanic;
    pub use crate::memory::bytes::readable_bytes;
    pub use crate::memory::huge_pages::{HUGE, huge_room};
    pub use crate::memory::prefetch::{Cache, prefetch, prefetch_at, prefetch_to};
    pub use crate::memory::reserve::{filled, reserve, room};
    pub use crate::relation::LayoutArrays;
    pub use crate::relation::checks::{
        LIMIT, check_counts, check_id, check_ids, check_len, check_limit, check_nodes,
    };
    pub use crate::relation::compress::{by_group, scan};
    pub use crate::schema::{etype_number, ntype_number};
}
