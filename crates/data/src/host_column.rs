//! Converts data on the host to frame columns.

use burn::tensor::kind::Basic;
use burn::tensor::{Bool, DType, Device, Float, Int, Tensor, TensorData};
use burn_gnn_graph::Column;

/// The data on the device, in its own type or, for booleans, the one the device likes; of 1 to [`Column::MAX_RANK`]
/// axes. `Err`: the type, which the device cannot hold.
pub(crate) fn column_of(data: TensorData, device: &Device) -> Result<Column, DType> {
    let dtype = data.dtype();
    if dtype.is_bool() {
        return Ok(place::<Bool>(data, device, None));
    }
    if !device.supports_dtype(dtype) {
        return Err(dtype);
    }
    Ok(if dtype.is_float() {
        place::<Float>(data, device, Some(dtype))
    } else {
        place::<Int>(data, device, Some(dtype))
    })
}

fn place<K: Basic>(data: TensorData, device: &Device, dtype: Option<DType>) -> Column {
    macro_rules! of_rank {
        ($d:literal) => {
            Column::new(match dtype {
                Some(dtype) => Tensor::<$d, K>::from_data(data, (device, dtype)),
                None => Tensor::<$d, K>::from_data(data, device),
            })
        };
    }
    match data.shape().num_dims() {
        1 => of_rank!(1),
        2 => of_rank!(2),
        3 => of_rank!(3),
        4 => of_rank!(4),
        _ => of_rank!(5),
    }
}
