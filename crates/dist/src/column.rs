//! Converts rows to columns of a frame.

use burn::tensor::{Device, TensorData};
use burn_gnn_graph::{Column, ColumnKind};

use crate::error::DistError;

/// Creates a column from rows that were read or received.
pub(crate) fn column(name: &str, data: TensorData, device: &Device) -> Result<Column, DistError> {
    let (dtype, axes) = (data.dtype(), data.rank());
    if !(1..=Column::MAX_RANK).contains(&axes) {
        return Err(DistError::Config {
            arg: "features",
            expected: format!("columns of 1 to {} axes", Column::MAX_RANK),
            found: format!("column `{name}` of {axes} axes"),
        });
    }
    Ok(match dtype {
        _ if dtype.is_float() => Column::from_data(ColumnKind::Float, data, device, Some(dtype)),
        _ if dtype.is_bool() => Column::from_data(ColumnKind::Bool, data, device, None),
        _ => Column::from_data(ColumnKind::Int, data, device, Some(dtype)),
    })
}
