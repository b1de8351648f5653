//! Products of 16-bit floats, computed in f32.
//!
//! A block of rows is widened to f32, multiplied by `gemm` while it is in cache, and rounded once. Burn's backends either
//! widen whole operands first, or multiply in 16 bits, which is slow on most processors.
//!
//! Blocks start at fixed rows, and their sums are added in order, so bits do not depend on the number of threads.

use std::iter::once;
use std::ops::Range;

use rayon::prelude::*;

use super::product::{Product, Transposed};
use crate::dense::convert::convert;
use crate::dense::widen::{append, put_sums, widen};
use crate::number::Elem;
use crate::parallel::collect::collect_rows;

/// Number of widened entries of a block, of both operands.
const BLOCK: usize = 1 << 18;
/// Largest number of runs of rows with separate sums in a gradient, and the smallest number of rows of a run.
const MAX_RUNS: usize = 16;
const MIN_RUN: usize = 2048;

/// Splits `rows` into blocks, for `width` entries per row.
fn blocks(rows: Range<usize>, width: usize) -> Vec<Range<usize>> {
    let size = (BLOCK / width).max(32);
    rows.clone().step_by(size).map(|at| at..(at + size).min(rows.end)).collect()
}

/// `x · w`, or `x · wᵀ` for a `w` that is stored transposed, plus `sum` if it is given. `x` is `[n, k]`, and the result
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
