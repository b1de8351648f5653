//! The 16-bit types, for tests of several operators.

use burn::tensor::{DType, TensorData};

/// The 16-bit types, with half a unit in the last place of 1.
pub(crate) const HALVES: [(DType, f64); 2] =
    [(DType::F16, 1.0 / 2048.0), (DType::BF16, 1.0 / 256.0)];

/// Rounds numbers to a type.
pub(crate) fn rounded(x: &[f64], dtype: DType) -> Vec<f64> {
    let data = TensorData::new(x.to_vec(), [x.len()]);
    data.convert_dtype(dtype).convert_dtype(DType::F64).try_into_vec().unwrap()
}
