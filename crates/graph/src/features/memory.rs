//! Rows in memory.

use burn::tensor::Tensor;

use super::format::RowType;
use super::packed::Packed;
use crate::derive::check_ids;
use crate::relation::check_len;
use crate::{FeatureSource, GraphError};

/// Rows in the memory of the process, narrower than f32 if asked for.
#[derive(Clone, Debug)]
pub struct MemoryRows {
    width: usize,
    rows: usize,
    kept: RowType,
    bytes: Vec<u8>,
}

impl MemoryRows {
    /// From numbers row after row.
    ///
    /// ```
    /// use burn_gnn_graph::{FeatureSource, MemoryRows, RowType};
    /// let rows = MemoryRows::new(&[1.0, 2.0, 3.0, 4.0], 2, RowType::F16)?;
    /// assert_eq!(rows.gather(&[1, 0, 1])?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), burn_gnn_graph::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// A number of values that is no multiple of `width`; a scale that is not positive.
    pub fn new(values: &[f32], width: usize, kept: RowType) -> Result<Self, GraphError> {
        kept.check()?;
        let rows = values.len().checked_div(width).unwrap_or(0);
        check_len("values", "whole rows", rows * width, values.len())?;
        Ok(Self { width, rows, kept, bytes: kept.narrow(values) })
    }
    /// From a tensor `[rows, width]`.
    pub fn from_tensor(x: Tensor<2>) -> Self {
        let [rows, width] = x.dims();
        let values: Vec<f32> = x.into_data().iter::<f32>().collect();
        Self { width, rows, kept: RowType::F32, bytes: RowType::F32.narrow(&values) }
    }
    /// All rows of a source, kept as f32.
    pub(crate) fn of(source: &dyn FeatureSource, ids: &[u32], kept: RowType) -> Result<Self, GraphError> {
        let mut bytes = Vec::with_capacity(ids.len() * source.width() * kept.bytes());
        for ids in ids.chunks(4096) {
            bytes.extend(kept.narrow(&source.gather(ids)?));
        }
        Ok(Self { width: source.width(), rows: ids.len(), kept, bytes })
    }
    /// Bytes that the rows take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl FeatureSource for MemoryRows {
    fn num_rows(&self) -> usize {
        self.rows
    }
    fn width(&self) -> usize {
        self.width
    }
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        self.packed().read(ids, out);
        Ok(())
    }
    fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_ids("ids", "the features", ids, self.rows)?;
        Ok(self.packed().gather(ids))
    }
}

impl MemoryRows {
    fn packed(&self) -> Packed<'_> {
        Packed { bytes: &self.bytes, width: self.width, kept: self.kept }
    }
}
