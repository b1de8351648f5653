//! Makes frame columns from rows of any rank.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use burn_gnn_graph::Column;

use crate::DistError;

/// A column of stored or received rows.
pub(crate) fn column(name: &str, data: TensorData, device: &Device) -> Result<Column, DistError> {
    let dtype = data.dtype();
    macro_rules! of_rank {
        ($d:literal) => {
            if dtype.is_float() {
                Column::new(Tensor::<$d>::from_data(data, (device, dtype)))
            } else if dtype.is_bool() {
                Column::new(Tensor::<$d, Bool>::from_data(data, device))
            } else {
                Column::new(Tensor::<$d, Int>::from_data(data, (device, dtype)))
            }
        };
    }
    Ok(match data.rank() {
        1 => of_rank!(1),
        2 => of_rank!(2),
        3 => of_rank!(3),
        4 => of_rank!(4),
        5 => of_rank!(5),
        found => {
            return Err(DistError::Config {
                arg: "features",
                expected: format!("columns of 1 to {} axes", Column::MAX_RANK),
                found: format!("column `{name}` of {found} axes"),
            });
        }
    })
}
