//! Tensors of reproducible numbers, and conversion to vectors.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_structure::Stream;

/// The CPU backends.
#[allow(deprecated, reason = "Burn has deprecated its ndarray backend, but it is still in use")]
pub fn devices() -> [Device; 2] {
    [Device::flex(), Device::ndarray()]
}

/// Creates an f64 matrix of numbers in `-1..1` that are functions of `purpose`, row and column.
pub fn matrix(device: &Device, purpose: &str, rows: usize, cols: usize) -> Tensor<2> {
    let s = Stream::new(3, purpose, 0);
    let v: Vec<f64> = (0..rows * cols)
        .map(|i| s.uniform((i / cols) as u64, (i % cols) as u64) * 2.0 - 1.0)
        .collect();
    Tensor::from_data(TensorData::new(v, [rows, cols]), (device, DType::F64))
}

/// Returns all entries as f64.
pub fn values<const D: usize>(x: &Tensor<D>) -> Vec<f64> {
    x.clone().into_data_dtype(DType::F64).try_into_vec().expect("f64")
}
