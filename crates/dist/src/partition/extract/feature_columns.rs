//! Selects rows of feature columns, which are tensors or files.

use std::collections::BTreeMap;

use burn::tensor::TensorData;
use burn_gnn_graph::{Column, Frame};
use safetensors::Dtype;

use super::chunked_column::ChunkedColumn;
use crate::error::DistError;
use crate::partition::format::dtypes::stored_dtype;

/// The columns of one node type or edge type.
pub(crate) type FeatureColumns = BTreeMap<String, FeatureColumn>;

/// A feature column.
#[derive(Clone, Debug)]
pub(crate) enum FeatureColumn {
    /// A tensor in memory, shared with the graph.
    Memory(Box<Column>),
    /// Mapped files, from which rows are read on demand.
    Chunks(ChunkedColumn),
}

impl FeatureColumn {
    /// Dtype and shape of a row as it is stored in files.
    pub(crate) fn row(&self) -> (Dtype, &[usize]) {
        match self {
            // `feature_columns` rejects quantised columns.
            Self::Memory(c) => {
                (stored_dtype(c.dtype()).unwrap_or(Dtype::U8), &c.shape().as_slice()[1..])
            }
            Self::Chunks(c) => c.row(),
        }
    }
    /// Selects rows as they are stored in files, booleans as one byte each. Ids are in range.
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
