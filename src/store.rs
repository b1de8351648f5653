//! Graphs and features larger than memory, in files.
//!
//! The [chapter on graphs larger than memory](https://github.com/burn-gnn/burn-gnn/blob/main/docs/out-of-core.md) has
//! complete programs.
//!
//! | graphs | description |
//! | --- | --- |
//! | [`CscBuild`] ([`BuildPlan`]) | sorts a stream of edges into a file, in bounded memory |
//! | [`StoredCsc`], [`StoredGraph`] | reads edges row by row; a graph to sample from |
//! | [`StoredDatabase`] | the graph of a database, with times |
//! | [`StoredEvents`] | a stream of events, with times, types and features |
//! | [`RawNumbers`], [`NumberedEdges`], [`Renumbering`] | numbers for ids of any kind; a new order of nodes |
//! | [`StreamCut`] ([`StreamMethod`]), [`StoredParts`] | partitions of graphs in files |
//!
//! | features | description |
//! | --- | --- |
//! | [`RowWriter`] ([`RowFormat`]), [`StoredRows`] | rows that are written, and read asynchronously |
//! | [`CachedRows`], [`PlannedRows`], [`PackedRows`] | cached; prefetched by a plan of batches; stored in the order of batches |

pub use crate::stored_database::StoredDatabase;
pub use crate::stored_events::StoredEvents;
pub use burn_gnn_store::*;
