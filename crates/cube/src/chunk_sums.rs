//! Combines the partial sums of the chunks of long rows, in order.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::launch::{address, arg, empty, grid};
use crate::layout::Layout;
use crate::walk::Visit;

#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_kernel<A: Float, O: Float>(
    parts: &[A],
    index: &[u32],
    indptr: &[u32],
    out: &mut [O],
    rows: usize,
    width: usize,
    #[comptime] mean: bool,
    #[define(A, O)] _types: [ElemType; 2],
) {
    let pos = ABSOLUTE_POS;
    if pos >= rows * width {
        terminate!();
    }
    let long = pos / width;
    let col = pos % width;
    let row = index[long] as usize;
    let mut sum = A::new(0.0_f32);
    for chunk in index[rows + long]..index[rows + long + 1] {
        sum += parts[chunk as usize * width + col];
    }
    if comptime!(mean) {
        sum /= A::cast_from(indptr[row + 1] - indptr[row]);
    }
    out[row * width + col] = O::cast_from(sum);
}

/// Sums rows of edges into `out` (`[rows, width]`): `launch` writes those of all rows but long ones, and of the chunks
/// of those in the type of sums.
pub(crate) fn sum_rows(
    layout: &Layout,
    out: &CubeTensor,
    width: usize,
    sums: DType,
    mean: bool,
    launch: impl Fn(Visit, usize, &CubeTensor),
) {
    launch(Visit::Rows, layout.rows, out);
    let Some(heavy) = &layout.heavy else { return };
    let parts = empty(out, Shape::from([heavy.chunks, width]), sums);
    launch(Visit::Chunks, heavy.chunks, &parts);
    let n = heavy.rows * width;
    let (count, dim) = grid(&out.client, n);
    // SAFETY: `index` names rows of `indptr` and chunks of `parts`, which has one row of `width` for each; `out` has
    // `width` entries for each row; threads beyond the last entry return early.
    unsafe {
        combine_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address([&parts, out], n),
            arg(&parts),
            arg(&heavy.index),
            arg(&layout.indptr),
            arg(out),
            heavy.rows,
            width,
            mean,
            [elem(sums), elem(out.dtype)],
        );
    }
}
