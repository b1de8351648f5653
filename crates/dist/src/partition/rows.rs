//! Feature columns on their way to parts, wherever their rows are.

use std::collections::BTreeMap;

use burn::tensor::{DType, TensorData};
use burn_gnn_graph::{Column, Frame};
use safetensors::Dtype;

use crate::DistError;

/// The columns of one node type or edge type.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    columns: BTreeMap<String, Column>,
}

impl Rows {
    /// The columns of a frame; shares its tensors.
    ///
    /// # Errors
    /// A quantised column.
    pub(crate) fn of_frame(frame: &Frame) -> Result<Self, DistError> {
        let mut columns = BTreeMap::new();
        for (name, column) in frame.columns() {
            if stored_dtype(column.dtype()).is_none() {
                return Err(DistError::Config {
                    arg: "features",
                    expected: "float, int or bool columns".into(),
                    found: format!("quantised column `{name}` of {}; dequantise it first", frame.label()),
                });
            }
            columns.insert(name.to_owned(), column.clone());
        }
        Ok(Self { columns })
    }
    pub(crate) fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }
}

/// Rows of a column as files hold them: booleans one byte each.
pub(crate) fn stored_rows(column: &Column, ids: &[u32]) -> TensorData {
    let data = column.select(ids).to_data();
    if data.dtype().is_bool() { data.convert::<bool>() } else { data }
}

/// What a file calls a dtype; `None` for quantised floats.
pub(crate) fn stored_dtype(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::F64 => Dtype::F64,
        DType::F32 | DType::Flex32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U64 => Dtype::U64,
        DType::U32 => Dtype::U32,
        DType::U16 => Dtype::U16,
        DType::U8 => Dtype::U8,
        DType::Bool(_) => Dtype::BOOL,
        DType::QFloat(_) => return None,
    })
}
