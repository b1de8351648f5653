//! Arrays of ids on a device: validation, and conversion from and to tensors.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Int, Shape, Tensor};
use burn_cubecl::CubeDevice;
use burn_cubecl::ops::into_data_sync;
use burn_cubecl::tensor::CubeTensor;
use burn_gnn_graph::GraphError;
use cubecl::prelude::*;

use crate::device::check::bytes_held;
use crate::device::launch::{self, address, arg, empty, grid};
use crate::device::upload::upload;

/// The first `len` entries of an array of ids.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    pub(crate) list: CubeTensor,
    pub(crate) len: usize,
}

/// Finds the position of the first id that is out of range.
#[cube(launch_unchecked, address_type = "dynamic")]
fn check_kernel(ids: &[u32], first: &[Atomic<u32>], n: usize, bound: u32) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    if ids[pos] >= bound {
        first[0].fetch_min(pos as u32);
    }
}

impl Ids {
    /// Uploads validated ids.
    ///
    /// # Errors
    /// There are more ids than fit in a buffer of the device.
    pub(crate) fn upload(
        what: &'static str,
        ids: &[u32],
        device: &CubeDevice,
    ) -> Result<Self, GraphError> {
        check_room(what, ids.len(), device)?;
        Ok(Self { list: upload(what, ids, device), len: ids.len() })
    }

    /// Validates the ids of a tensor, which must be below `bound`.
    ///
    /// # Errors
    /// The tensor is on another device, does not have 32-bit integers, or has an id out of range.
    pub(crate) fn new(
        arg: &'static str,
        of: &str,
        ids: Tensor<1, Int>,
        bound: usize,
        device: &CubeDevice,
    ) -> Result<Self, GraphError> {
        let invalid = |expected: &str, found: String| GraphError::Setting {
            arg,
            expected: format!("{expected}, for {of}"),
            found,
        };
        let dtype = ids.dtype();
        if !matches!(dtype, DType::I32 | DType::U32) {
            return Err(invalid(
                "ids of element type I32 or U32 (`Tensor::cast`)",
                format!("{dtype:?}"),
            ));
        }
        let [len] = ids.dims();
        if len == 0 {
            return Self::upload(arg, &[], device);
        }
        if len >= u32::MAX as usize {
            return Err(invalid("fewer than 2^32 - 1 ids", len.to_string()));
        }
        let found = ids.device();
        let list = into_cube(ids, device).ok_or_else(|| {
            invalid(&format!("a tensor on the sampler's device {device:?}"), format!("{found:?}"))
        })?;
        let (needed, held) = bytes_held(&list);
        if needed > held {
            return Err(invalid(&format!("a buffer of {needed} bytes"), held.to_string()));
        }
        let list = burn_cubecl::kernel::into_contiguous(list);
        let first = upload(arg, &[u32::MAX], device);
        let (count, dim) = grid(&list.client, len);
        // SAFETY: `list` has `len` entries, as was checked; threads beyond them return early.
        unsafe {
            check_kernel::launch_unchecked(
                &list.client,
                count,
                dim,
                address([&list], len),
                launch::arg(&list),
                launch::arg(&first),
                len,
                bound as u32,
            );
        }
        let ids = Self { list, len };
        match number_at(&first, 0) {
            u32::MAX => Ok(ids),
            at => {
                let what = format!("`{arg}` of {of}, position {at}:");
                Err(GraphError::IdOutOfRange {
                    what,
                    id: u64::from(number_at(&ids.list, at as usize)),
                    bound: bound as u64,
                })
            }
        }
    }

    /// Converts to a tensor of i32, or of u32 if `bound` exceeds i32.
    pub(crate) fn tensor(&self, bound: usize) -> Tensor<1, Int> {
        let dtype = if bound <= 1 << 31 { DType::I32 } else { DType::U32 };
        from_cube(CubeTensor { dtype, ..self.exact() })
    }

    /// The array, truncated to `len` entries.
    fn exact(&self) -> CubeTensor {
        match self.len {
            0 => empty(&self.list, Shape::from([0]), DType::U32),
            n if n == self.list.meta.num_elements() => self.list.clone(),
            n => burn_cubecl::kernel::slice(self.list.clone(), std::slice::from_ref(&(0..n))),
        }
    }

    pub(crate) fn read(&self) -> Vec<u32> {
        if self.len == 0 {
            return vec![];
        }
        let data = into_data_sync(self.list.clone());
        let numbers =
            data.bytes().chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
        numbers.take(self.len).collect()
    }
}

/// Returns an error if `count` numbers do not fit in a buffer of the device.
pub(crate) fn check_room(
    what: &'static str,
    count: usize,
    device: &CubeDevice,
) -> Result<(), GraphError> {
    within(what, count, device.client().properties().memory.max_page_size)
}

fn within(what: &'static str, count: usize, bytes: u64) -> Result<(), GraphError> {
    let (count, limit) = (count as u64, (bytes / 4).min(u64::from(u32::MAX - 1)));
    if count <= limit {
        Ok(())
    } else {
        Err(GraphError::TooLarge { relation: String::new(), what, count, limit })
    }
}

/// Reads entry `at` of an array; this synchronises with the device.
pub(crate) fn number_at(x: &CubeTensor, at: usize) -> u32 {
    let place = at..at + 1;
    let one = burn_cubecl::kernel::slice(x.clone(), std::slice::from_ref(&place));
    Ids { list: one, len: 1 }.read()[0]
}

#[cfg(not(feature = "fusion"))]
fn into_cube(x: Tensor<1, Int>, device: &CubeDevice) -> Option<CubeTensor> {
    use burn::backend::DispatchTensorKind;
    match x.into_dispatch().kind {
        DispatchTensorKind::Cube(x) => Some(x.int()).filter(|x| x.device == *device),
        _ => None,
    }
}

#[cfg(not(feature = "fusion"))]
fn from_cube(x: CubeTensor) -> Tensor<1, Int> {
    Tensor::from_primitive::<burn_cubecl::Cube>(x)
}

/// With fusion, tensors have handles that other crates cannot create, so ids are copied through the host.
#[cfg(feature = "fusion")]
fn into_cube(x: Tensor<1, Int>, device: &CubeDevice) -> Option<CubeTensor> {
    if x.device().without_autodiff() != of_device(device) {
        return None;
    }
    let numbers: Vec<u32> = x.into_data().iter::<i64>().map(|id| id as u32).collect();
    Some(upload("ids", &numbers, device))
}

#[cfg(feature = "fusion")]
fn from_cube(x: CubeTensor) -> Tensor<1, Int> {
    let (device, dtype, len) = (of_device(&x.device), x.dtype, x.meta.num_elements());
    let data = burn::tensor::TensorData::new(Ids { list: x, len }.read(), [len]);
    Tensor::from_data(data.convert_dtype(dtype), (&device, dtype))
}

#[cfg(feature = "fusion")]
fn of_device(device: &CubeDevice) -> burn::tensor::Device {
    burn::tensor::Device::new(burn::backend::DispatchDevice::Cube(device.clone()))
}

/// `to[i] = from[i]`
#[cube(launch_unchecked, address_type = "dynamic")]
fn copy_kernel(from: &[u32], to: &mut [u32], n: usize) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    to[pos] = from[pos];
}

/// An uninitialised array of `n` numbers.
pub(super) fn ints(device: &CubeDevice, n: usize) -> CubeTensor {
    burn_cubecl::ops::numeric::empty_device_contiguous_dtype(
        device.client(),
        device.clone(),
        Shape::from([n.max(4)]),
        DType::U32,
    )
}

/// An array of `n` numbers with all bits set.
pub(super) fn ones(device: &CubeDevice, n: usize) -> CubeTensor {
    burn_cubecl::ops::numeric::full_device_dtype(
        device.client(),
        Shape::from([n.max(4)]),
        device.clone(),
        InputScalar::new(u32::MAX, elem(DType::U32)),
        DType::U32,
    )
}

/// Copies the first `n` numbers of `from` to `to`, and returns `to`.
pub(super) fn copy(from: &CubeTensor, n: usize, to: CubeTensor) -> CubeTensor {
    let (count, dim) = grid(&to.client, n.max(1));
    // SAFETY: both have `n` entries; threads beyond them return early.
    unsafe {
        copy_kernel::launch_unchecked(
            &to.client,
            count,
            dim,
            address([&to], n),
            arg(from),
            arg(&to),
            n,
        )
    };
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_ids_than_fit_in_a_buffer_are_an_error() {
        assert!(within("seeds", 100, 400).is_ok());
        let e = within("seeds", 101, 400).unwrap_err();
        assert!(
            matches!(e, GraphError::TooLarge { what: "seeds", count: 101, limit: 100, .. }),
            "{e}"
        );
        assert_eq!(e.to_string(), "101 seeds exceed the limit of 100; give fewer at a time");
    }
}
