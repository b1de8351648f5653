//! Reads data sets from folders. Each layout is a module: this library's arrays and tables, OGB, TUDataset, gnn-benchmark,
//! DGL, knowledge graphs. [`load_dataset`] selects between this library's layouts by the description in the folder.

pub(crate) mod dgl;
pub(crate) mod events_layout;
#[cfg(feature = "npz")]
pub(crate) mod gnn_benchmark;
pub(crate) mod interactions;
pub(crate) mod links;
pub(crate) mod matrix;
pub(crate) mod metadata;
pub(crate) mod npy_layout;
#[cfg(test)]
mod npy_layout_tests;
pub(crate) mod ogb;
pub(crate) mod series_layout;
pub(crate) mod tables_layout;
#[cfg(test)]
mod tables_layout_tests;
pub(crate) mod temporal_triples;
#[cfg(test)]
mod timed_layout_tests;
pub(crate) mod triples;
pub(crate) mod tu_dataset;

use std::path::Path;

use burn_gnn_files::DataError;

use crate::dataset::Dataset;
use crate::files::{format_error, io_error};
use crate::layouts::metadata::METADATA;
use tables_layout::TABLES;

/// Reads a data set in one of this library's layouts. The description in `dir` selects the layout:
///
/// * `metadata.json` describes `.npy` arrays: edges `[2, E]` int32 or int64; features dense (float32, or int8 with a scale)
///   or in COO format; labels int64, with -1 for no label; splits as lists of node ids.
/// * `tables.json` describes tab-separated tables in GraphLearn's format, as the
///   [crates graph](crate::crates_graph) uses.
///
/// The files are not trusted: sizes are compared with file lengths before memory is allocated, ids with their ranges, and
/// counts with the description, and file names must be inside `dir`. Sparse features have at most `2^24` columns. A node
/// type has at most `2^26` nodes, or 16 nodes per byte of the arrays if that is more.
///
/// # Errors
/// * [`DataError::Io`] for a missing file.
/// * [`DataError::Version`] for another version of the layout.
/// * [`DataError::Table`] for an invalid row.
/// * [`DataError::Format`] for all other deviations from the layout, and for knowledge graphs, which
///   [`load_knowledge_graph`](crate::load_knowledge_graph) reads.
/// * The errors of [`Graph`](burn_gnn_graph::Graph) construction.
pub fn load_dataset(dir: impl AsRef<Path>) -> Result<Dataset, DataError> {
    let dir = dir.as_ref();
    if dir.join(METADATA).exists() {
        npy_layout::load(dir)
    } else if dir.join(TABLES).exists() {
        tables_layout::load(dir)
    } else if dir.is_dir() {
        Err(format_error(
            dir,
            format!("expected a data set with `{METADATA}` or `{TABLES}`, found neither"),
        ))
    } else {
        let missing = std::fs::metadata(dir)
            .err()
            .unwrap_or_else(|| std::io::ErrorKind::NotADirectory.into());
        Err(io_error(dir, missing))
    }
}
