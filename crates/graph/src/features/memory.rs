//! Rows in memory.

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::format::RowType;
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
        read(&self.bytes, self.width, self.kept, ids, out);
        Ok(())
    }
}

/// Rows of `ids` out of `bytes`, by all threads where there are many.
pub(crate) fn read(bytes: &[u8], width: usize, kept: RowType, ids: &[u32], out: &mut [f32]) {
    if width == 0 {
        return;
    }
    let size = width * kept.bytes();
    let row = |(&id, out): (&u32, &mut [f32])| kept.widen(&bytes[id as usize * size..][..size], out);
    if ids.len() * width < 1 << 16 {
        ids.iter().zip(out.chunks_exact_mut(width)).for_each(row);
    } else {
        ids.par_iter().zip(out.par_chunks_exact_mut(width)).with_min_len(256).for_each(row);
    }
}
