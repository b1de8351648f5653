//! Sets of many graphs, for graph classification and regression.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, Graph};

use crate::files::format_error;

/// A set of graphs with labels and other columns of one row per graph.
#[derive(Clone, Debug)]
pub struct GraphSet {
    /// Name of the data set.
    pub name: String,
    /// The graphs. All have the same node and edge types.
    pub graphs: Vec<Graph>,
    /// Id of each graph in the files; 0 for a single graph without an id.
    pub graph_ids: Vec<i64>,
    /// Columns with one row per graph, such as labels.
    pub data: Frame,
}

/// Number of graphs × (types and columns) that is accepted for files of any size. Each relation or column of a graph
/// takes a few hundred bytes even if it is empty, and graphs × columns can grow with the square of the file size.
const PARTS_FREE: u64 = 1 << 16;
/// Above [`PARTS_FREE`], one relation or column is accepted for every so many bytes of the files.
const BYTES_PER_PART: u64 = 16;

/// Returns an error if `graphs` graphs with `columns` types and columns each are too many for files of `bytes` bytes.
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
        "expected graphs with at most {most} types and columns in total for {bytes} bytes of files, found {graphs} graphs \
         with {columns} each; join columns of one feature, or split the data set"
    );
    Err(format_error(path, why))
}
