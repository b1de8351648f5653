//! Validates sparse matrices in COO and CSR format and converts them to [`Features`].

use std::path::Path;

use burn_gnn_files::DataError;

use crate::dataset::features::{Features, feature_size};
use crate::files::format_error;
use crate::files::ids_below;

/// Validates a COO matrix: `row` and `col` have one entry per value, and all ids are in range.
pub(crate) fn coo(
    path: &Path,
    rows: usize,
    cols: usize,
    row: Vec<i64>,
    col: Vec<i64>,
    value: Vec<f32>,
) -> Result<Features, DataError> {
    feature_size(path, rows as u64, cols as u64)?;
    for (name, len) in [("row", row.len()), ("col", col.len())] {
        if len != value.len() {
            return Err(format_error(
                path,
                format!("{name}: expected {} entries, one per value, found {len}", value.len()),
            ));
        }
    }
    let (row, col) = (ids_below(path, "row", row, rows)?, ids_below(path, "col", col, cols)?);
    Ok(Features::Sparse { rows, cols, row, col, value })
}

/// Validates a CSR matrix: `indptr` has `rows + 1` entries that do not decrease, from 0 to the number of values.
pub(crate) fn csr(
    path: &Path,
    rows: usize,
    cols: usize,
    indptr: &[i64],
    indices: Vec<i64>,
    value: Vec<f32>,
) -> Result<Features, DataError> {
    let wrong = |why: String| Err(format_error(path, format!("indptr: {why}")));
    if indptr.len() != rows + 1 {
        return wrong(format!(
            "expected {} entries for {rows} rows, found {}",
            rows + 1,
            indptr.len()
        ));
    }
    if indptr[0] != 0 || indptr[rows] != indices.len() as i64 {
        return wrong(format!(
            "expected 0 to {}, found {} to {}",
            indices.len(),
            indptr[0],
            indptr[rows]
        ));
    }
    if let Some(i) = indptr.windows(2).position(|w| w[0] > w[1]) {
        return wrong(format!(
            "expected entries that never decrease, found {} after {} at {}",
            indptr[i + 1],
            indptr[i],
            i + 1
        ));
    }
    let mut row = Vec::with_capacity(indices.len());
    for (r, w) in indptr.windows(2).enumerate() {
        row.resize(w[1] as usize, r as i64);
    }
    coo(path, rows, cols, row, indices, value)
}
