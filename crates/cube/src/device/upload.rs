//! Uploads arrays to device memory.

use burn::tensor::{DType, Shape, TensorData};
use burn_cubecl::CubeDevice;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::{Bytes, Relation};
use cubecl::prelude::*;

use crate::device::error::CubeError;

/// Returns an error if an array of 32-bit entries is larger than one buffer of the device.
pub(crate) fn check_size(
    what: &'static str,
    entries: usize,
    device: &CubeDevice,
) -> Result<(), CubeError> {
    within(what, entries, device.client().properties().memory.max_page_size, device)
}

fn within(
    what: &'static str,
    entries: usize,
    limit: u64,
    device: &CubeDevice,
) -> Result<(), CubeError> {
    let bytes = entries as u64 * 4;
    if bytes <= limit {
        return Ok(());
    }
    Err(CubeError::TooLarge { what, entries, bytes, limit, device: format!("{device:?}") })
}

/// Returns an error if a kernel has more arrays than the device binds.
pub(crate) fn check_arrays(arrays: usize, device: &CubeDevice) -> Result<(), CubeError> {
    within_bindings(arrays, device.client().properties().hardware.max_bindings, device)
}

fn within_bindings(arrays: usize, bindings: u32, device: &CubeDevice) -> Result<(), CubeError> {
    // One binding is used for the scalars of the kernel.
    let limit = (bindings as usize).saturating_sub(1);
    if arrays <= limit {
        Ok(())
    } else {
        Err(CubeError::TooManyArrays { arrays, limit, device: format!("{device:?}") })
    }
}

/// Smallest number of entries of an array. A kernel that does not read an array gets any other array in its place, and a
/// buffer must hold at least one vector.
const MIN_ENTRIES: usize = 4;

/// Device memory of a tensor.
pub fn device_bytes(tensor: &CubeTensor) -> Bytes {
    Bytes::device(tensor.meta.num_elements() * tensor.dtype.size())
}

/// Uploads `values`; short arrays are padded with zeros that kernels do not read.
///
/// # Panics
/// If the array is larger than one buffer of the device.
#[track_caller]
pub(crate) fn upload(what: &'static str, values: &[u32], device: &CubeDevice) -> CubeTensor {
    if let Err(error) = check_size(what, values.len(), device) {
        panic!("{error}");
    }
    let mut short = [0; MIN_ENTRIES];
    let values = match values.len() {
        n if n < MIN_ENTRIES => {
            short[..n].copy_from_slice(values);
            &short[..]
        }
        _ => values,
    };
    let client = device.client();
    let handle = client.create_from_slice(u32::as_bytes(values));
    CubeTensor::new_contiguous(
        client,
        device.clone(),
        Shape::from(vec![values.len()]),
        handle,
        DType::U32,
    )
}

/// Uploads numbers in a float type; `values` is not empty.
pub(crate) fn upload_floats(values: &[f64], device: &CubeDevice, dtype: DType) -> CubeTensor {
    let data = TensorData::new(values.to_vec(), [values.len()]).convert_dtype(dtype);
    <burn_cubecl::CubeBackend as burn::backend::ops::FloatTensorOps<_>>::float_from_data(
        data, device,
    )
}

/// Checks that the arrays of a relation fit in buffers of a device. If they do not, kernels panic with the same message.
///
/// # Errors
/// An array of the relation is larger than one buffer.
pub fn check_device(relation: &Relation, device: &CubeDevice) -> Result<(), CubeError> {
    check_size("edge ids", relation.num_edges(), device)?;
    check_size("row offsets", relation.num_dst().max(relation.num_src()) + 1, device)
}

#[cfg(all(test, feature = "wgpu"))]
pub(crate) mod tests {
    use burn::tensor::{Device, DeviceType};
    use burn_gnn_testutil::{Kind, NO_ADAPTER, skip};
    use cubecl::device::{WgpuDevice, WgpuDeviceKind};

    use super::*;

    /// The default adapter; if there is none, the test is recorded as skipped.
    pub(crate) fn adapter() -> Option<CubeDevice> {
        if Device::enumerate(DeviceType::Wgpu).is_empty() {
            skip(Kind::Gpu, NO_ADAPTER);
            return None;
        }
        Some(CubeDevice::Wgpu(WgpuDevice::new(WgpuDeviceKind::DefaultDevice)))
    }

    #[test]
    fn arrays_larger_than_a_buffer_are_errors() {
        let Some(device) = adapter() else { return };
        assert_eq!(within("edge ids", 100, 400, &device), Ok(()));
        let e = within("edge ids", 101, 400, &device).unwrap_err();
        assert!(
            matches!(
                e,
                CubeError::TooLarge { what: "edge ids", entries: 101, bytes: 404, limit: 400, .. }
            ),
            "{e}"
        );
        let limit = device.client().properties().memory.max_page_size;
        assert!(check_size("edge ids", (limit / 4) as usize, &device).is_ok());
        assert!(check_size("edge ids", (limit / 4) as usize + 1, &device).is_err());
    }

    #[test]
    fn more_arrays_than_bindings_are_errors() {
        let Some(device) = adapter() else { return };
        assert_eq!(within_bindings(7, 8, &device), Ok(()));
        let e = within_bindings(8, 8, &device).unwrap_err();
        assert!(matches!(e, CubeError::TooManyArrays { arrays: 8, limit: 7, .. }), "{e}");
        assert!(
            e.to_string().contains("needs 8 arrays") && e.to_string().contains("binds 7;"),
            "{e}"
        );
    }
}
