//! Graphs and features larger than memory, in files.
//!
//! The [chapter on graphs larger than memory](https://github.com/burn-gnn/burn-gnn/blob/main/docs/out-of-core.md) has
//! complete programs.
//!
//! | graphs | what |
//! | --- | --- |
//! | [`CscBuild`] ([`BuildPlan`]) | sorts a stream of edges into a file, in bounded memory |
//! | [`StoredCsc`], [`StoredGraph`] | reads edges row by row; a graph to sample from |
//! | [`RawNumbers`], [`NumberedEdges`], [`Renumbering`] | numbers for ids of any kind; another order |
//! | [`StreamCut`] ([`StreamMethod`]), [`StoredParts`] | partitions from files |
//!
//! | features | what |
//! | --- | --- |
//! | [`RowWriter`] ([`RowFormat`]), [`StoredRows`] | written and read, asynchronously |
//! | [`CachedRows`], [`PlannedRows`], [`PackedRows`] | cached; planned ahead; packed in the order of batches |

pub use burn_gnn_store::*;
