//! Defines sets of many graphs.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, Graph};

use crate::files::format_error;

/// Graphs of one set, and what is known of each as a whole.
#[derive(Clone, Debug)]
pub struct GraphSet {
    /// Name of the set.
    pub name: String,
    /// The graphs; all have the same types.
    pub graphs: Vec<Graph>,
    /// Number of each graph in the files; 0 for the only one of a set without numbers.
    pub graph_ids: Vec<i64>,
    /// Columns of the graphs, one row per graph: labels and the like.
    pub data: Frame,
}

/// Graphs, relations and columns of graphs that any files may declare; above it there must be so many bytes for each,
/// since one takes some hundred bytes whatever it holds, and the rows of `graphs.csv` times the columns of the others
/// grow with the square of the files.
const PARTS_FREE: u64 = 1 << 16;
const BYTES_PER_PART: u64 = 16;

/// Refuses more graphs with `columns` types and columns each than `bytes` of files can be about.
pub(crate) fn check_parts(
    path: &Path,
    graphs: usize,
    columns: usize,
    bytes: u64,
) -> Result<(), DataError> {
    let parts = (graphs as u64).saturating_mul(1 + columns as u64);
    let most = PARTS_FREE + bytes / BYTES_PER_PART;
    if parts <= most {
        return Ok(());
    }
    let why = format!(
        "expected graphs with at most {most} types and columns in all for {bytes} bytes of files, found {graphs} graphs with \
         {columns} each; join columns of one feature, or read the set in pieces"
    );
    Err(format_error(path, why))
}
