//! Exclusive prefix sums: offsets from counts.

use burn::tensor::{DType, Shape};
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;
use cubecl::{CubeCount, CubeDim, calculate_cube_count_elemwise};

use crate::device::launch::{address, arg, empty, grid};

/// Threads per block, and entries per thread.
const THREADS: usize = 256;
const EACH: usize = 4;
/// Entries that one thread block sums.
const RUN: usize = THREADS * EACH;

#[cube(launch_unchecked, address_type = "dynamic")]
fn scan_kernel(x: &[u32], out: &mut [u32], sums: &mut [u32], n: usize, runs: usize) {
    let unit = UNIT_POS as usize;
    let run = CUBE_POS;
    let first = run * RUN + unit * EACH;
    let mut own = 0u32;
    #[unroll]
    for i in 0..EACH {
        if first + i < n {
            own += x[first + i];
        }
    }
    let mut shared = Shared::<[u32]>::new_slice(THREADS);
    shared[unit] = own;
    sync_cube();
    #[unroll]
    for level in 0..comptime!(THREADS.ilog2() as usize) {
        let step = comptime!(1usize << level);
        let mut before = 0u32;
        if unit >= step {
            before = shared[unit - step];
        }
        sync_cube();
        let own = shared[unit];
        shared[unit] = own + before;
        sync_cube();
    }
    let mut sum = shared[unit] - own;
    #[unroll]
    for i in 0..EACH {
        // The entry after the last one is the total.
        if first + i <= n {
            out[first + i] = sum;
        }
        if first + i < n {
            sum += x[first + i];
        }
    }
    if unit == THREADS - 1 && run < runs {
        sums[run] = shared[unit];
    }
}

#[cube(launch_unchecked, address_type = "dynamic")]
fn add_kernel(sums: &[u32], out: &mut [u32], n: usize) {
    let pos = ABSOLUTE_POS;
    if pos >= n {
        terminate!();
    }
    let own = out[pos];
    out[pos] = own + sums[pos / RUN];
}

/// `out[i] = Σ x[..i]` for `i` in `0..=n`; sums are below 2³².
pub(crate) fn exclusive_sums(x: &CubeTensor, n: usize) -> CubeTensor {
    // One more run if the last one is full, for the total.
    let runs = n / RUN + 1;
    let ints = |len: usize| empty(x, Shape::from([len.max(4)]), DType::U32);
    let (out, sums) = (ints(n + 1), ints(runs));
    let client = x.client.clone();
    let dim = CubeDim::new_1d(THREADS as u32);
    let count: CubeCount = calculate_cube_count_elemwise(&client, runs * THREADS, dim);
    // SAFETY: `x` has `n` entries, `out` one more, `sums` one for every run; threads beyond them read and write
    // nothing.
    unsafe {
        scan_kernel::launch_unchecked(
            &client,
            count,
            dim,
            address([x, &out], runs * RUN),
            arg(x),
            arg(&out),
            arg(&sums),
            n,
            runs,
        );
    }
    if runs == 1 {
        return out;
    }
    let before = exclusive_sums(&sums, runs);
    let (count, dim) = grid(&client, n + 1);
    // SAFETY: `before` has an entry for every run of `out`; threads beyond the last entry return early.
    unsafe {
        add_kernel::launch_unchecked(
            &client,
            count,
            dim,
            address([&out], n + 1),
            arg(&before),
            arg(&out),
            n + 1,
        );
    }
    out
}
