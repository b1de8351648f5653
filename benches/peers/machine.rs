//! Measures the memory bandwidth of the machine, as a reference for kernels.

use burn::tensor::{Device, Tensor};
use rayon::prelude::*;
use serde_json::json;

use crate::measure::{Entry, device, emit, measure, settings};

/// Numbers in a buffer that is larger than any cache: 512 MiB.
const LEN: usize = 128 << 20;
/// Numbers in a buffer on a device: 128 MiB, which every adapter of WebGPU supports; two of them
/// exceed any cache.
const DEVICE_LEN: usize = 32 << 20;
/// Bytes of a gathered row, as of 128 numbers, and rows of the matrix: that of arxiv-like.
const ROW: usize = 128;
const ROWS: usize = 169_343;
const GATHERS: usize = 2_332_486;

/// Prints GB/s of a sequential read, of a copy (bytes read and written) and of rows gathered in random order.
pub(crate) fn run() {
    let part = LEN / (8 * settings().threads);
    let from: Vec<f32> = (0..LEN).into_par_iter().map(|i| i as f32).collect();
    let mut to = vec![0f32; LEN];
    let bytes = size_of_val(&from[..]) as f64;
    report("read", bytes, || {
        std::hint::black_box(from.par_chunks(part).map(sum).sum::<f32>());
    });
    report("copy", 2.0 * bytes, || {
        to.par_chunks_mut(part)
            .zip(from.par_chunks(part))
            .for_each(|(to, from)| to.copy_from_slice(from))
    });

    if device() != Device::flex() {
        let x = Tensor::<1>::ones([DEVICE_LEN], &device());
        // Multiplication by a number reads and writes every entry once. A failed allocation would
        // take no time.
        let last = (x.clone() * 3.0)
            .slice_dim(0, DEVICE_LEN - 1..DEVICE_LEN)
            .into_data()
            .try_to_vec::<f32>();
        assert_eq!(last.ok(), Some(vec![3.0]), "the device did not do the product");
        report("device copy", (2 * size_of::<f32>() * DEVICE_LEN) as f64, || drop(x.clone() * 3.0));
    }
    let matrix = &from[..ROWS * ROW];
    // A full-period generator modulo 2^32, scaled, so that prefetchers cannot predict the order.
    let mut state = 1u32;
    let order: Vec<u32> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((u64::from(state) * ROWS as u64) >> 32) as u32
    })
    .take(GATHERS)
    .collect();
    report("gather of 512-byte rows", (GATHERS * ROW * 4) as f64, || {
        let total: f32 = order
            .par_chunks(GATHERS / (8 * settings().threads))
            .map(|part| {
                let mut acc = [0f32; ROW];
                for &row in part {
                    for (a, x) in acc.iter_mut().zip(&matrix[row as usize * ROW..][..ROW]) {
                        *a += x;
                    }
                }
                acc.iter().sum::<f32>()
            })
            .sum();
        std::hint::black_box(total);
    });
}

fn report(op: &str, bytes: f64, f: impl FnMut()) {
    let times = measure(f);
    let gb_s = bytes / times.least_ms() / 1e6;
    emit(
        Entry { group: "machine", graph: "-", op },
        Some(&times),
        &[("gb_s", json!((gb_s * 10.0).round() / 10.0))],
    );
}

/// Sums in lanes, so that additions are independent.
fn sum(x: &[f32]) -> f32 {
    let mut lanes = [0f32; 64];
    for chunk in x.as_chunks::<64>().0 {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += x;
        }
    }
    lanes.iter().sum()
}
