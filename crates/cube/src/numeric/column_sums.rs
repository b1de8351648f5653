//! Column sums of a table, in a fixed order.

use burn::backend::cubecl::dtype_to_storage_type as elem;
use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use crate::device::launch::{address, arg, empty, grid, reshaped, wide, zeros};

/// Number of rows that a thread adds.
const ROWS: usize = 256;

#[cube(launch_unchecked, address_type = "dynamic")]
fn columns_kernel<F: Float, A: Float, O: Float>(
    x: &[F],
    out: &mut [O],
    rows: usize,
    width: usize,
    tasks: usize,
    #[comptime] most: usize,
    #[define(F, A, O)] _types: [ElemType; 3],
) {
    let pos = ABSOLUTE_POS;
    if pos >= tasks * width {
        terminate!();
    }
    let from = pos / width * most;
    let mut to = from + most;
    if to > rows {
        to = rows;
    }
    let mut sum = A::new(0.0_f32);
    for row in from..to {
        sum += A::cast_from(x[row * width + pos % width]);
    }
    out[pos] = O::cast_from(sum);
}

/// `out[c] = Σ x[r, c]` for `x: [rows, width]`, as `[width]` in type `dtype`. Rows are added in runs of 256, the sums of
/// runs again in runs of 256, and so on.
pub(crate) fn column_sums(x: CubeTensor, rows: usize, width: usize, dtype: DType) -> CubeTensor {
    let shape = Shape::from(vec![width]);
    if rows == 0 || width == 0 {
        return zeros(&x, shape, dtype);
    }
    let (mut x, mut rows) = (x, rows);
    loop {
        let tasks = rows.div_ceil(ROWS);
        let out = empty(
            &x,
            Shape::from(vec![tasks, width]),
            if tasks == 1 { dtype } else { wide(x.dtype) },
        );
        let (count, dim) = grid(&out.client, tasks * width);
        // SAFETY: `x` has `rows` rows of `width` columns, `out` one for every run of them; other threads return early.
        unsafe {
            columns_kernel::launch_unchecked(
                &out.client,
                count,
                dim,
                address([&x, &out], tasks * width),
                arg(&x),
                arg(&out),
                rows,
                width,
                tasks,
                ROWS,
                [elem(x.dtype), elem(wide(x.dtype)), elem(out.dtype)],
            );
        }
        if tasks == 1 {
            return reshaped(out, shape);
        }
        (x, rows) = (out, tasks);
    }
}
