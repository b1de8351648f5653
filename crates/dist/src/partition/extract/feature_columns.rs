//! Reads feature columns from tensors or files when parts are written.

use std::collections::BTreeMap;

use burn::tensor::TensorData;
use burn_gnn_graph::{Column, Frame};
use safetensors::Dtype;

use super::chunked_column::ChunkedColumn;
use crate::error::DistError;
use crate::partition::format::dtypes::stored_dtype;

/// The columns of one node type or edge type.
pub(crate) type FeatureColumns = BTreeMap<String, FeatureColumn>;

/// A column.
#[derive(Clone, Debug)]
pub(crate) enum FeatureColumn {
    /// In memory; shares the tensor.
    Memory(Box<Column>),
    /// In files, read as rows are asked for.
    Chunks(ChunkedColumn),
}

impl FeatureColumn {
    /// What files hold of a row: dtype and shape, the number of rows left out.
    pub(crate) fn row(&self) -> (Dtype, &[usize]) {
        match self {
            // Quantised columns were refused by `feature_columns`.
            Self::Memory(c) => {
                (stored_dtype(c.dtype()).unwrap_or(Dtype::U8), &c.shape().as_slice()[1..])
            }
            Self::Chunks(c) => c.row(),
        }
    }
    /// Rows as files hold them, booleans one byte each. Ids are in range.
    pub(crate) fn rows(&self, ids: &[u32]) -> TensorData {
        match self {
            Self::Memory(c) => {
                let data = c.select(ids).to_data();
                if data.dtype().is_bool() { data.convert::<bool>() } else { data }
            }
            Self::Chunks(c) => c.rows(ids),
        }
    }
}

/// The columns of a frame.
///
/// # Errors
/// A quantised column.
pub(crate) fn feature_columns(frame: &Frame) -> Result<FeatureColumns, DistError> {
    let source = |(name, column): (&str, &Column)| match stored_dtype(column.dtype()) {
        Some(_) => Ok((name.to_owned(), FeatureColumn::Memory(Box::new(column.clone())))),
        None => Err(DistError::Config {
            arg: "features",
            expected: "float, int or bool columns".into(),
            found: format!("quantised column `{name}` of {}; dequantise it first", frame.label()),
        }),
    };
    frame.columns().map(source).collect()
}
