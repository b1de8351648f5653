//! Graphs and features far larger than memory for `burn-gnn`.
//!
//! The chapter on graphs larger than memory of the book:
//! <https://github.com/burn-gnn/burn-gnn/blob/main/docs/out-of-core.md>.
//!
//! [`CscBuild`] sorts a stream of edges into a file in bounded memory, and [`StoredCsc`] reads it row by row.

#![deny(unsafe_code)]

mod build;
mod cache;
mod csc;
mod error;
#[cfg(feature = "sampling")]
mod graph;
mod io;
mod partition;
mod raw_ids;
mod renumber;
mod rows;
mod section_writer;
mod sections;

pub use build::{
    BuildPlan, BuildStats, ChainedEdges, CscBuild, EdgeChunk, EdgeIter, EdgeResults, EdgeSlices,
    EdgeStream, NpyEdges, ReversedEdges, SelfLoops, TextEdges,
};
#[cfg(feature = "sampling")]
pub use cache::PackedBatches;
pub use cache::{CacheStats, CachedRows, PackedRows, PlannedBatch, PlannedRows};
pub use csc::StoredCsc;
pub use error::StoreError;
#[cfg(feature = "sampling")]
pub use graph::StoredGraph;
pub use partition::{Assignment, GraphFiles, StoredPart, StoredParts, StreamCut, StreamMethod};
pub use raw_ids::{NumberedEdges, RawId, RawNumbers, text_id};
#[cfg(feature = "sampling")]
pub use renumber::RenumberedRows;
pub use renumber::{RenumberedEdges, Renumbering};
pub use rows::{RowFormat, RowWriter, StoredRows};

#[doc(hidden)]
pub mod internal {
    //! What only the packages of this project use.
    pub use crate::partition::RelationFiles;
}
