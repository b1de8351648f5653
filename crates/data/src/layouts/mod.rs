//! Reads data sets from folders, one module per layout: this library's arrays and tables, OGB, TUDataset, DGL,
//! triples. [`load_dataset`] selects the reader of this library's layouts by the description in the folder.

pub(crate) mod dgl;
#[cfg(feature = "npz")]
pub(crate) mod gnn_benchmark;
pub(crate) mod matrix;
pub(crate) mod metadata;
pub(crate) mod npy_layout;
#[cfg(test)]
mod npy_layout_tests;
pub(crate) mod ogb;
pub(crate) mod tables_layout;
#[cfg(test)]
mod tables_layout_tests;
pub(crate) mod triples;
pub(crate) mod tu_dataset;

use std::path::Path;

use burn_gnn_files::DataError;

use crate::dataset::Dataset;
use crate::files::{format_error, io_error};
use crate::layouts::metadata::METADATA;
use tables_layout::TABLES;

/// Reads the data set in `dir`; the layout follows from the description found there.
///
/// * `metadata.json`: arrays as `.npy` files: `edges/*.npy` `[2, E]` int32 or int64; features dense (float32, or int8
///   with a scale) or COO; labels int64, -1 for none; splits as lists of node ids;
/// * `tables.json`: tab-separated tables in GraphLearn's format, as the crates graph uses.
///
/// Nothing in the files is trusted: sizes are compared with file lengths before memory is taken, ids with their ranges,
/// counts with the description, and file names must stay inside `dir`. Sizes that no data backs are bounded: sparse
/// features have at most `2^24` columns, and a node type at most `2^26` nodes or, if that is more, 16 for each byte of
/// the arrays.
///
/// # Errors
/// [`DataError::Io`] for a missing file, [`DataError::Version`] for another layout version, [`DataError::Table`] for a
/// bad row, [`DataError::Format`] for anything else that is not what the layout asks for (a set of knowledge graph
/// triples included: [`load_knowledge_graph`](crate::load_knowledge_graph) reads those), and the errors of
/// [`Graph`](burn_gnn_graph::Graph) construction.
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
