//! Tensors of reproducible numbers, and conversion to vectors.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_gnn_structure::Stream;

/// The CPU backends of this build, by name.
pub fn named_devices() -> Vec<(&'static str, Device)> {
    let mut all = vec![("flex", Device::flex())];
    // Burn has deprecated its ndarray backend, but it is still in use.
    #[cfg(feature = "ndarray")]
    #[allow(deprecated)]
    all.push(("ndarray", Device::ndarray()));
    all
}

/// The CPU backends of this build.
pub fn devices() -> Vec<Device> {
    named_devices().into_iter().map(|(_, device)| device).collect()
}

/// A device other than [`Device::flex`], for tests of tensors on several devices: another backend, or Flex with
/// autodiff in a build without one.
pub fn other_device() -> Device {
    devices().into_iter().nth(1).unwrap_or_else(|| Device::flex().autodiff())
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
