//! Node features: a dense or a sparse matrix with one row per node.

use std::path::Path;

use burn::tensor::{Device, Tensor, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::internal::OrPanic;

use crate::files::format_error;

/// Features of one node type: a matrix with one row per node.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// Every entry, row after row.
    Dense {
        /// Number of nodes.
        rows: usize,
        /// Number of features of a node.
        cols: usize,
        /// `rows * cols` values in row-major order.
        values: Vec<f32>,
    },
    /// The non-zero entries, in COO format.
    Sparse {
        /// Number of nodes.
        rows: usize,
        /// Number of features of a node.
        cols: usize,
        /// Row of each entry.
        row: Vec<u32>,
        /// Column of each entry.
        col: Vec<u32>,
        /// Value of each entry.
        value: Vec<f32>,
    },
}

impl Features {
    /// Number of rows: one per node.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense { rows, .. } | Self::Sparse { rows, .. } => *rows,
        }
    }
    /// Number of columns: the features of a node.
    pub fn cols(&self) -> usize {
        match self {
            Self::Dense { cols, .. } | Self::Sparse { cols, .. } => *cols,
        }
    }
    /// All `rows * cols` values in row-major order. Repeated entries of a sparse matrix are summed.
    ///
    /// # Panics
    /// If [`try_to_dense`](Self::try_to_dense) returns an error. Use that function for untrusted files.
    ///
    /// # Cost
    /// Allocates `rows * cols` numbers. The 22,470 × 4,714 features of the data set Facebook take 400 MB.
    #[track_caller]
    pub fn to_dense(&self) -> Vec<f32> {
        self.try_to_dense().or_panic()
    }
    /// [`to_dense`](Self::to_dense) for features of unknown size. A small file can describe a sparse matrix whose
    /// dense form does not fit in memory.
    ///
    /// ```
    /// use burn_gnn_data::{DataError, Features};
    /// use burn_gnn_graph::GraphError;
    /// let wide = Features::Sparse { rows: 1 << 30, cols: 1 << 24, row: vec![], col: vec![], value: vec![] };
    /// assert!(matches!(wide.try_to_dense(), Err(DataError::Graph(GraphError::OutOfMemory { bytes, .. })) if bytes == 1 << 56));
    /// ```
    ///
    /// # Errors
    /// * [`GraphError::OutOfMemory`] if `rows * cols` numbers cannot be allocated. On a system that overcommits, the
    ///   allocation may succeed and memory run out later.
    /// * [`GraphError::IdOutOfRange`] for an entry outside the matrix. Readers of files reject such entries before.
    ///
    /// # Cost
    /// As [`to_dense`](Self::to_dense).
    pub fn try_to_dense(&self) -> Result<Vec<f32>, DataError> {
        let (rows, cols) = (self.rows(), self.cols());
        let too_large = || {
            DataError::Graph(GraphError::OutOfMemory {
                what: format!("the dense form of {rows} x {cols} features"),
                bytes: (rows as u128).saturating_mul(cols as u128).saturating_mul(4),
                remedy: "keep the sparse form, or take fewer rows or columns",
            })
        };
        let len = rows.checked_mul(cols).ok_or_else(too_large)?;
        let mut out: Vec<f32> = vec![];
        out.try_reserve_exact(len).map_err(|_| too_large())?;
        match self {
            Self::Dense { values, .. } => out.extend_from_slice(values),
            Self::Sparse { row, col, value, .. } => {
                out.resize(len, 0.0);
                for ((&r, &c), &v) in row.iter().zip(col).zip(value) {
                    for (what, id, bound) in [("feature row", r, rows), ("feature column", c, cols)]
                    {
                        if id as usize >= bound {
                            return Err(DataError::Graph(GraphError::IdOutOfRange {
                                what: what.into(),
                                id: u64::from(id),
                                bound: bound as u64,
                            }));
                        }
                    }
                    out[r as usize * cols + c as usize] += v;
                }
            }
        }
        Ok(out)
    }
    /// Divides every row by its sum and keeps the storage format. Rows whose sum is zero stay unchanged.
    ///
    /// The GCN paper normalises bags of words like this (PyG: `NormalizeFeatures`).
    #[must_use]
    pub fn row_normalized(&self) -> Self {
        let mut out = self.clone();
        match &mut out {
            Self::Dense { cols, values, .. } => {
                for r in values.chunks_exact_mut((*cols).max(1)) {
                    let sum: f32 = r.iter().sum();
                    if sum != 0.0 {
                        r.iter_mut().for_each(|v| *v /= sum);
                    }
                }
            }
            Self::Sparse { rows, row, value, .. } => {
                let mut sums = vec![0.0f32; *rows];
                for (&r, &v) in row.iter().zip(&*value) {
                    sums[r as usize] += v;
                }
                for (&r, v) in row.iter().zip(value) {
                    let sum = sums[r as usize];
                    if sum != 0.0 {
                        *v /= sum;
                    }
                }
            }
        }
        out
    }
    /// Converts the features to a dense tensor `[rows, cols]` in the default float type of the device.
    ///
    /// # Errors
    /// Those of [`try_to_dense`](Self::try_to_dense).
    ///
    /// # Cost
    /// That of [`to_dense`](Self::to_dense), and a copy to the device.
    pub fn to_tensor(&self, device: &Device) -> Result<Tensor<2>, DataError> {
        Ok(Tensor::from_data(
            TensorData::new(self.try_to_dense()?, [self.rows(), self.cols()]),
            device,
        ))
    }
}

/// Largest number of columns of sparse features. The file declares the number without any data for it, and a
/// dense copy or a weight matrix allocates memory for each column.
const MOST_COLUMNS: u64 = 1 << 24;

/// [`feature_size`] for sparse features and for features without rows, with a limit on the columns.
pub(crate) fn sparse_size(
    described_in: &Path,
    ntype: &str,
    rows: u64,
    cols: u64,
) -> Result<(usize, usize), DataError> {
    if cols > MOST_COLUMNS {
        let why =
            format!("features of `{ntype}`: expected at most {MOST_COLUMNS} columns, found {cols}");
        return Err(format_error(described_in, why));
    }
    feature_size(described_in, rows, cols)
}

/// Converts a declared shape, or returns an error if the dense matrix would exceed the address space.
pub(crate) fn feature_size(
    described_in: &Path,
    rows: u64,
    cols: u64,
) -> Result<(usize, usize), DataError> {
    let bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(4));
    match (usize::try_from(rows), usize::try_from(cols), bytes) {
        (Ok(r), Ok(c), Some(bytes))
            if bytes <= isize::MAX as u64 && cols <= u64::from(u32::MAX) =>
        {
            Ok((r, c))
        }
        _ => Err(format_error(
            described_in,
            format!("expected features that fit in memory, found shape [{rows}, {cols}]"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(rows: usize, cols: usize, row: Vec<u32>, col: Vec<u32>) -> Features {
        let value = vec![1.0; row.len()];
        Features::Sparse { rows, cols, row, col, value }
    }

    #[test]
    fn a_dense_form_beyond_memory_is_an_error() {
        for (rows, cols, needed) in
            [(1 << 32, 1 << 24, 1u128 << 58), (usize::MAX, 2, u128::from(u64::MAX) * 8)]
        {
            let e = sparse(rows, cols, vec![], vec![]).try_to_dense().unwrap_err();
            assert!(
                matches!(e, DataError::Graph(GraphError::OutOfMemory { bytes, .. }) if bytes == needed),
                "{e:?}"
            );
            assert!(
                e.to_string().contains(&format!("{needed} bytes"))
                    && e.to_string().contains("keep the sparse form"),
                "{e}"
            );
        }
        let e = Features::Dense { rows: usize::MAX, cols: usize::MAX, values: vec![] }
            .try_to_dense()
            .unwrap_err();
        assert!(matches!(e, DataError::Graph(GraphError::OutOfMemory { .. })));
    }

    #[test]
    fn repeated_entries_are_summed_and_entries_outside_are_errors() {
        assert_eq!(sparse(2, 2, vec![1, 1], vec![0, 0]).try_to_dense().unwrap(), [0., 0., 2., 0.]);
        assert!(sparse(0, 9, vec![], vec![]).try_to_dense().unwrap().is_empty());
        assert!(matches!(
            sparse(2, 2, vec![0], vec![2]).try_to_dense(),
            Err(DataError::Graph(GraphError::IdOutOfRange { id: 2, bound: 2, .. }))
        ));
        assert!(matches!(
            sparse(2, 2, vec![2], vec![0]).try_to_dense(),
            Err(DataError::Graph(GraphError::IdOutOfRange { id: 2, bound: 2, .. }))
        ));
    }

    #[test]
    #[should_panic(expected = "keep the sparse form")]
    fn to_dense_panics_where_try_to_dense_fails() {
        let _ = sparse(1 << 32, 1 << 24, vec![], vec![]).to_dense();
    }
}
