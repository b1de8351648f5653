//! Reads Matrix Market files: sparse matrices as graphs.

mod entries;
mod header;
#[cfg(test)]
mod tests;

use std::path::Path;

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, Graph};

use crate::columns::host_column::{column_of, f32_column, unsupported};
use crate::columns::narrow::RoundedCount;
use crate::tables::schema::column_names::WEIGHT;
use crate::tables::text::blocks::Blocks;
use entries::{Entries, Value, read_entries};
use header::{Header, Symmetry, read_header};

/// Options of [`load_matrix_market_with`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixMarketOptions {
    /// Whether a value that f32 cannot represent is rounded to the nearest f32. By default it is an error. Such a value
    /// would become infinite or 0, or is an integer that would change its value.
    pub round_values: bool,
    /// Number of values that [`round_values`](Self::round_values) changed.
    pub rounded: RoundedCount,
    /// Whether weights are read as f64 instead of f32.
    pub f64_values: bool,
    /// Whether reading a long file draws a progress bar on a terminal.
    pub progress: bool,
}

impl Default for MatrixMarketOptions {
    fn default() -> Self {
        let rounded = RoundedCount::default();
        Self { round_values: false, rounded, f64_values: false, progress: true }
    }
}

impl MatrixMarketOptions {
    /// Reads weights as f32. A value that f32 cannot represent is an error.
    pub fn new() -> Self {
        Self::default()
    }
    /// Rounds values that f32 cannot represent to the nearest f32, and counts them ([`rounded`](Self::rounded)).
    #[must_use]
    pub fn round_values(mut self) -> Self {
        self.round_values = true;
        self
    }
    /// Reads weights as f64.
    #[must_use]
    pub fn with_f64_values(mut self) -> Self {
        self.f64_values = true;
        self
    }
    /// Enables or disables the progress bar.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }
}

/// Reads a sparse matrix in Matrix Market's coordinate format (`.mtx`) as a graph. SuiteSparse and mirrors of SNAP publish
/// graphs in this format, and SciPy writes it (`mmwrite`). The file may be plain text, gzip or zstd.
///
/// * **Edges**: each entry is an edge `row -> column`, in the order of the file. An entry that occurs twice is two
///   parallel edges. Node numbers start at 0, the numbers in the file at 1.
/// * **Weights**: the values of entries are the edge column [`WEIGHT`], f32 of shape `[edges]`. A pattern matrix has no
///   values and no weights.
/// * **Symmetric matrices** store one triangle. The edges of the file are followed by the reverses of the edges outside
///   the diagonal, in the same order. The reverses in a skew-symmetric matrix have negated weights.
/// * **Node types**: a square matrix is a homogeneous graph. A rectangular matrix has the node types `row` and `column`
///   and the relation `_E`.
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::load_matrix_market;
///
/// fn main() -> Result<(), burn_gnn_data::DataError> {
///     let dir = tempfile::tempdir().unwrap();
///     let path = dir.path().join("a.mtx");
///     std::fs::write(&path, "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n1 1 0.5\n3 1 2.0\n").unwrap();
///     let g = load_matrix_market(&path, &Device::flex())?;
///     let edges = g.relation(..)?;
///     assert_eq!((edges.src(), edges.dst()), (&[0, 2, 0][..], &[0, 0, 2][..]));
///     Ok(())
/// }
/// ```
///
/// # Errors
/// * [`DataError::Io`] if the file cannot be read.
/// * [`DataError::Format`] for an invalid banner; a dense (`array`), complex or hermitian matrix; a number of entries that
///   differs from the header; and a symmetric matrix that is not square.
/// * [`DataError::Table`], with file, line and field, for an entry that is not a number, is outside the matrix, or has a
///   value that f32 cannot represent ([`MatrixMarketOptions`]).
/// * [`GraphError::TooLarge`](burn_gnn_graph::GraphError::TooLarge) for too many nodes or edges.
///
/// # Cost
/// Blocks of the file are parsed in parallel. Memory: the edges, 8 MiB, and 3 MiB per thread.
///
/// # Source
/// Boisvert, Pozo, Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935, 1996.
pub fn load_matrix_market(path: impl AsRef<Path>, device: &Device) -> Result<Graph, DataError> {
    load_matrix_market_with(path, &MatrixMarketOptions::new(), device)
}

/// [`load_matrix_market`] with options.
///
/// # Errors
/// Those of [`load_matrix_market`], and [`GraphError::ColumnMismatch`](burn_gnn_graph::GraphError::ColumnMismatch) for f64
/// weights on a device that does not support f64.
pub fn load_matrix_market_with(
    path: impl AsRef<Path>,
    options: &MatrixMarketOptions,
    device: &Device,
) -> Result<Graph, DataError> {
    let path = path.as_ref();
    let mut blocks = Blocks::whole(path, options.progress)?;
    let (header, first) = read_header(path, &mut blocks)?;
    let round = options.round_values.then_some(&options.rounded);
    let f32s = |v, edges: usize| Ok(Some(f32_column(v, [edges], device)));
    let f64s = |v: Vec<f64>, edges: usize| {
        column_of(TensorData::new(v, [edges]), device)
            .map(Some)
            .map_err(|d| unsupported(path.display(), WEIGHT, format!("{d:?}"), device))
    };
    let read = || match (header.valued, options.f64_values) {
        (false, _) => {
            let all = read_entries(path, &header, first, blocks, round)?;
            graph(&header, all, |_: Vec<()>, _| Ok(None))
        }
        (true, false) => graph(&header, read_entries(path, &header, first, blocks, round)?, f32s),
        (true, true) => graph(&header, read_entries(path, &header, first, blocks, round)?, f64s),
    };
    read().map_err(|e| e.in_file(path))
}

/// Builds the graph and adds the reverses of a symmetric matrix.
fn graph<T: Value>(
    header: &Header,
    entries: Entries<T>,
    column: impl Fn(Vec<T>, usize) -> Result<Option<Column>, DataError>,
) -> Result<Graph, DataError> {
    let Entries { rows: mut src, columns: mut dst, mut values } = entries;
    if header.symmetry != Symmetry::General {
        let stored = src.len();
        let more = (0..stored).filter(|&i| src[i] != dst[i]).count();
        src.reserve_exact(more);
        dst.reserve_exact(more);
        values.reserve_exact(more);
        for i in 0..stored {
            if src[i] == dst[i] {
                continue;
            }
            let (from, to, value) = (dst[i], src[i], values[i]);
            src.push(from);
            dst.push(to);
            let skew = header.symmetry == Symmetry::Skew;
            values.push(if skew { value.negative() } else { value });
        }
    }
    let mut graph = if header.rows == header.columns {
        Graph::homogeneous(header.rows as usize, src, dst)?
    } else {
        let nodes = Graph::builder()
            .nodes("row", header.rows as usize)
            .nodes("column", header.columns as usize);
        nodes.edges(("row", "_E", "column"), src, dst).build()?
    };
    if let Some(weights) = column(values, graph.relations()[0].num_edges())? {
        graph.edges_mut(0)?.insert_column(WEIGHT, weights)?;
    }
    Ok(graph)
}
