//! Prepares kernel launches: grid sizes, element types, vector sizes and outputs.

use burn::tensor::{DType, Shape};
use burn_cubecl::ops::numeric::{empty_device_contiguous_dtype, zeros_client};
use burn_cubecl::tensor::CubeTensor;
use cubecl::client::Client;
use cubecl::ir::AddressType;
use cubecl::prelude::BufferArg;
use cubecl::{CubeCount, CubeDim, calculate_cube_count_elemwise};

/// Threads per thread block.
const THREADS: u32 = 256;

/// The accumulator type of an element type.
pub(crate) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Threads per thread block on this device, a power of two.
pub(crate) fn threads_per_block(client: &Client) -> u32 {
    let most = client.properties().hardware.max_units_per_cube.clamp(1, THREADS);
    1 << most.ilog2()
}

/// A grid of at least `n` threads.
pub(crate) fn grid(client: &Client, n: usize) -> (CubeCount, CubeDim) {
    grid_of(client, n, THREADS)
}

/// A grid of at least `n` threads, in thread blocks of at most `most`, a power of two.
fn grid_of(client: &Client, n: usize, most: u32) -> (CubeCount, CubeDim) {
    let dim = CubeDim::new_1d(threads_per_block(client).min(most));
    (calculate_cube_count_elemwise(client, n, dim), dim)
}

/// Number of messages of `width` entries that a thread of a kernel over rows of edges loads before it adds them.
///
/// This number, the grid of [`grid_of_rows`] and the vector size of `argmax.rs` are the fastest of eight variants on an
/// H200, by a quarter to a third on the graph where they matter most (docs/measurements/2026-11-26-gpus.md). All variants
/// add the edges of a row in the same order.
pub(crate) fn in_flight(width: usize) -> usize {
    if width == 1 { 8 } else { 4 }
}

/// A grid of at least `n` threads for a kernel over rows of edges, with messages of `width` entries.
pub(crate) fn grid_of_rows(client: &Client, n: usize, width: usize) -> (CubeCount, CubeDim) {
    grid_of(client, n, if width == 1 { 64 } else { THREADS })
}

/// A tensor as a kernel argument.
pub(crate) fn arg(x: &CubeTensor) -> BufferArg {
    x.clone().into_buffer_arg()
}

/// A placeholder for an array that the compiled variant of a kernel does not access. It aliases the first argument, so it
/// needs no binding. If the kernel declares the array as mutable, the first argument must be mutable too.
pub(crate) fn unread() -> BufferArg {
    BufferArg::alias(0, 0)
}

/// An optional tensor as a kernel argument; [`unread`] for `None`.
pub(crate) fn arg_if(x: Option<&CubeTensor>) -> BufferArg {
    x.map_or_else(unread, arg)
}

/// The index type that can address all entries of these tensors, and count to `threads`.
pub(crate) fn address<'a>(
    tensors: impl IntoIterator<Item = &'a CubeTensor>,
    threads: usize,
) -> AddressType {
    let entries = |x: &CubeTensor| x.handle.size() as usize / x.dtype.size();
    AddressType::from_len(tensors.into_iter().map(entries).fold(threads, usize::max))
}

/// An uninitialised contiguous tensor on the device of `like`.
pub(crate) fn empty(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(like.client.clone(), like.device.clone(), shape, dtype)
}

/// A tensor of zeros on the device of `like`.
pub(crate) fn zeros(like: &CubeTensor, shape: Shape, dtype: DType) -> CubeTensor {
    if shape.num_elements() == 0 {
        return empty(like, shape, dtype);
    }
    zeros_client(like.client.clone(), like.device.clone(), shape, dtype)
}

/// A contiguous tensor with the same entries and another shape.
pub(crate) fn reshaped(x: CubeTensor, shape: Shape) -> CubeTensor {
    CubeTensor::new_contiguous(x.client, x.device, shape, x.handle, x.dtype)
}

/// The vector size for loads of `dtype`: at most 4, and a divisor of all `lengths`.
pub(crate) fn vector(client: &Client, dtype: DType, lengths: &[usize]) -> usize {
    let fits = |n: &usize| *n <= 4 && lengths.iter().all(|len| len % n == 0);
    client.io_optimized_vector_sizes(dtype.size()).filter(fits).max().unwrap_or(1)
}

/// The feature shape of a tensor: all axes but the first.
pub(crate) fn features(x: &CubeTensor) -> Vec<usize> {
    x.meta.shape().iter().skip(1).copied().collect()
}

/// The shape `[n, ..features]`.
pub(crate) fn with_rows(n: usize, features: &[usize]) -> Shape {
    let mut dims = vec![n];
    dims.extend_from_slice(features);
    Shape::from(dims)
}
