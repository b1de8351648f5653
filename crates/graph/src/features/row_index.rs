//! Makes index tensors from row numbers of any size.

use burn::tensor::{Device, Int, Tensor, TensorData};

/// Converts row numbers to an index tensor for `Tensor::select` and similar operations: 32-bit integers, which every device
/// supports, or 64-bit integers if a number does not fit.
pub fn row_index(rows: impl Iterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let data = row_index_data(rows);
    let dtype = data.dtype();
    Tensor::from_data(data, (device, dtype))
}

/// [`row_index`] as data on the CPU.
pub fn row_index_data(rows: impl Iterator<Item = usize>) -> TensorData {
    let rows: Vec<i64> = rows.map(|r| r as i64).collect();
    let n = rows.len();
    match rows.iter().map(|&r| i32::try_from(r)).collect::<Result<Vec<_>, _>>() {
        Ok(rows) => TensorData::new(rows, [n]),
        Err(_) => TensorData::new(rows, [n]),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::DType;

    use super::*;

    /// No number becomes negative.
    #[test]
    fn numbers_beyond_31_bits() {
        let data = row_index_data([0, i32::MAX as usize].into_iter());
        assert_eq!(
            (data.dtype(), data.try_to_vec::<i32>().unwrap()),
            (DType::I32, vec![0, i32::MAX])
        );
        let large = [7, 1 << 31, 1 << 40];
        let data = row_index_data(large.into_iter());
        assert_eq!(
            (data.dtype(), data.try_to_vec::<i64>().unwrap()),
            (DType::I64, large.map(|r| r as i64).to_vec())
        );
        assert_eq!(row_index_data([].into_iter()).shape().as_slice(), [0]);
    }
}
