//! Multiplies matrices of 16-bit floats in f32.
//!
//! A block of rows is widened to f32, multiplied by `gemm` while it is in cache, and rounded once. Backends either
//! widen whole operands first or multiply 16-bit numbers as they are, which most processors do slowly.
//!
//! Blocks lie at fixed rows and sums of blocks are added in order, so bits are the same for any number of threads.

use std::iter::once;
use std::ops::Range;

use rayon::prelude::*;

use super::product::{Product, Transposed};
use crate::dense::convert::convert;
use crate::dense::widen::{append, put_sums, widen};
use crate::number::Elem;
use crate::parallel::collect::collect_rows;

/// Widened entries of both sides of a block.
const BLOCK: usize = 1 << 18;
/// Runs of rows with separate sums in a gradient, and rows of the smallest one.
const MAX_RUNS: usize = 16;
const MIN_RUN: usize = 2048;

/// `rows` cut into blocks for `width` entries per row.
fn blocks(rows: Range<usize>, width: usize) -> Vec<Range<usize>> {
    let size = (BLOCK / width).max(32);
    rows.clone().step_by(size).map(|at| at..(at + size).min(rows.end)).collect()
}

/// `x · w`, or `x · wᵀ` for a `w` that is stored transposed, onto `sum` where there is one; `x: [n, k]`, the result
/// `[n, m]`.
pub(super) fn rows<T: Elem<Acc = f32>>(
    x: &[T],
    w: &[T],
    transposed: bool,
    [n, k, m]: [usize; 3],
    sum: Option<&[T]>,
) -> Vec<T> {
    let w = widen::<f32, T>(w);
    let right = if transposed { [m, k] } else { [k, m] };
    collect_rows(&blocks(0..n, k + m), m, &|run, out| {
        let (mut wide, mut sums) = (Vec::with_capacity(run.len() * k), Vec::new());
        append(once(&x[run.start * k..run.end * k]), &mut wide);
        if let Some(sum) = sum {
            append(once(&sum[run.start * m..run.end * m]), &mut sums);
        }
        Product::new([run.len(), k], right, Transposed { left: false, right: transposed })
            .alone(&wide, &w, &mut sums);
        put_sums(&sums, out);
    })
}

/// `xᵀ · grad` for `x: [n, k]` and `grad: [n, m]`.
pub(super) fn gradient<T: Elem<Acc = f32>>(x: &[T], grad: &[T], [n, k, m]: [usize; 3]) -> Vec<T> {
    let size = n.div_ceil(MAX_RUNS).max(MIN_RUN);
    let one = |from: usize| {
        let (mut left, mut right, mut sums) = (vec![], vec![], vec![]);
        for run in blocks(from..(from + size).min(n), k + m) {
            left.clear();
            right.clear();
            append(once(&x[run.start * k..run.end * k]), &mut left);
            append(once(&grad[run.start * m..run.end * m]), &mut right);
            Product::new([run.len(), k], [run.len(), m], Transposed { left: true, right: false })
                .alone(&left, &right, &mut sums);
        }
        sums
    };
    let starts: Vec<usize> = (0..n).step_by(size).collect();
    let parts: Vec<Vec<f32>> =
        if starts.len() == 1 { vec![one(0)] } else { starts.into_par_iter().map(one).collect() };
    let add = |mut all: Vec<f32>, part: Vec<f32>| {
        all.iter_mut().zip(part).for_each(|(sum, s)| *sum += s);
        all
    };
    convert(&parts.into_iter().reduce(add).unwrap_or_default())
}
