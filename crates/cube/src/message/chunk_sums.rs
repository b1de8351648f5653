//! Adds partial sums in order: those of the chunks of long rows, and those of runs of typed rows.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::device::launch::{address, arg, empty, grid};
use crate::message::layout::Layout;
use crate::message::walk::Visit;

#[cube(launch_unchecked, address_type = "dynamic")]
fn combine_kernel<A: Float, O: Float>(
    parts: &[A],
    index: &[u32],
    indptr: &ComptimeOption<Box<[u32]>>,
    out: &mut [O],
    rows: usize,
    width: usize,
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
    #[comptime]
    if let ComptimeOption::Some(indptr) = indptr {
        sum /= A::cast_from(indptr[row + 1] - indptr[row]);
    }
    out[row * width + col] = O::cast_from(sum);
}

/// Sums rows of edges into `out` (`[rows, width]`). `launch` is called for the rows that are not long, and for the chunks
/// of long rows, whose sums are in the accumulator type.
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
    combine(&parts, &heavy.index, heavy.rows, mean.then_some(&layout.indptr), out, width);
}

/// Writes `rows` rows of `out` (`[.., width]`) as sums of `parts` (`[.., width]`, in the accumulator type). `index` has the
/// `rows` row numbers, followed by `rows + 1` offsets of their parts. If `indptr` is given, sums are divided by the degree.
pub(crate) fn combine(
    parts: &CubeTensor,
    index: &CubeTensor,
    rows: usize,
    indptr: Option<&CubeTensor>,
    out: &CubeTensor,
    width: usize,
) {
    let n = rows * width;
    let (count, dim) = grid(&out.client, n);
    // SAFETY: `index` names rows of `out` and `indptr` and parts of `parts`, all of `width` entries; threads beyond the
    // last entry return early.
    unsafe {
        combine_kernel::launch_unchecked(
            &out.client,
            count,
            dim,
            address([parts, out], n),
            arg(parts),
            arg(index),
            indptr.map(arg).into(),
            arg(out),
            rows,
            width,
            [elem(parts.dtype), elem(out.dtype)],
        );
    }
}
