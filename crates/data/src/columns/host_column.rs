//! Converts arrays on the host to frame columns, and frame columns to bytes.

use std::fmt::Display;
use std::io;

use burn::tensor::{DType, Device, Shape, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, ColumnKind, GraphError};

/// Copies an array of 1 to [`Column::MAX_RANK`] axes to the device. It keeps its type, except booleans, which get the
/// boolean type of the device. `Err`: the type, if the device does not support it.
pub(crate) fn column_of(data: TensorData, device: &Device) -> Result<Column, DType> {
    let dtype = data.dtype();
    if dtype.is_bool() {
        return Ok(Column::from_data(ColumnKind::Bool, data, device, None));
    }
    if !device.supports_dtype(dtype) {
        return Err(dtype);
    }
    let kind = if dtype.is_float() { ColumnKind::Float } else { ColumnKind::Int };
    Ok(Column::from_data(kind, data, device, Some(dtype)))
}

/// Error for a column whose type the device does not support.
pub(crate) fn unsupported(
    frame: impl Display,
    name: &str,
    dtype: String,
    device: &Device,
) -> DataError {
    DataError::Graph(GraphError::ColumnMismatch {
        frame: frame.to_string(),
        name: name.to_owned(),
        what: "dtype",
        expected: format!("one that {device:?} supports"),
        actual: dtype,
    })
}

/// Creates a float32 column.
pub(crate) fn f32_column(values: Vec<f32>, shape: impl Into<Shape>, device: &Device) -> Column {
    let data = TensorData::new(values, shape);
    Column::from_data(ColumnKind::Float, data, device, Some(DType::F32))
}

/// Creates an int64 column.
pub(crate) fn i64_column(values: Vec<i64>, shape: impl Into<Shape>, device: &Device) -> Column {
    let data = TensorData::new(values, shape);
    Column::from_data(ColumnKind::Int, data, device, Some(DType::I64))
}

/// Gathers rows of a row-major matrix with `width` columns.
pub(crate) fn pick_rows<T: Copy>(values: &[T], rows: &[u32], width: usize) -> Vec<T> {
    let mut picked = Vec::with_capacity(rows.len() * width);
    rows.iter().for_each(|&r| picked.extend_from_slice(&values[r as usize * width..][..width]));
    picked
}

/// Bytes of a column that are copied to the host at a time.
pub(crate) const PART: usize = 4 << 20;

/// Passes the bytes of a column, converted to type `stored`, to `part`, some rows at a time. Each part except the last
/// has a multiple of `at_once` rows.
pub(crate) fn each_part(
    column: &Column,
    stored: DType,
    at_once: usize,
    mut part: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let row = column.shape().num_elements().checked_div(column.len()).unwrap_or(0)
        * column.dtype().size();
    let rows = PART.checked_div(row).unwrap_or(usize::MAX).max(1);
    let rows = rows.checked_next_multiple_of(at_once).unwrap_or(usize::MAX);
    let mut host = |column: &Column| {
        let data = column.to_data();
        let data = if data.dtype() == stored { data } else { data.convert_dtype(stored) };
        part(data.bytes())
    };
    if column.len() <= rows {
        return host(column);
    }
    (0..column.len()).step_by(rows).try_for_each(|from| {
        let ids: Vec<u32> = (from..column.len().min(from + rows)).map(|row| row as u32).collect();
        host(&column.select(&ids))
    })
}
