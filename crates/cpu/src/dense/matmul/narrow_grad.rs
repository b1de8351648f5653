//! Gradients of weights with at most 16 columns, as in the first layer of a small network.
//!
//! For these `gemm` reads `x` by column, with a page per entry: 10 GFLOP/s on one core for rows of 1433 entries and 16
//! columns, and 45 in this module. An epoch of GCN on a cora-like graph is 1.28 times as fast on 2 threads
//! (docs/measurements/2026-11-24-specialised-kernels.md).
//!
//! Sums run in ascending row inside of fixed runs, without fused multiply-add, so bits do not depend on the instruction
//! set or the number of threads.

use rayon::prelude::*;

use crate::dense::small_products::{LANES, outer};
use crate::number::Real;
use crate::number::lanes::Lanes;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use crate::simd::unroll::each;

/// Columns of the left operand whose sums are in registers at the same time.
const COLUMNS: usize = 8;
/// Rows that are processed before the next columns: few enough that their entries stay in cache.
const BLOCK: usize = 32;
/// Largest number of runs of rows with separate sums, and the smallest number of rows of a run.
const MAX_RUNS: usize = 64;
const MIN_RUN: usize = 512;

/// Whether this module computes gradients of `m` columns.
pub(super) fn suits(m: usize) -> bool {
    m <= LANES
}

/// `xᵀ · grad` for `x: [n, k]` and `grad: [n, m]`.
///
/// Rows are split into runs whose number depends on `n` only. Each run has separate sums, which are added in order.
pub(super) fn gradient<A: Real>(x: &[A], grad: &[A], [n, k, m]: [usize; 3]) -> Vec<A> {
    let size = n.div_ceil(MAX_RUNS).max(MIN_RUN);
    let one = |from: usize| {
        let rows = from..(from + size).min(n);
        vectorised(Gradient {
            x: &x[rows.start * k..rows.end * k],
            grad: &grad[rows.start * m..rows.end * m],
            k,
            m,
        })
    };
    let starts: Vec<usize> = (0..n).step_by(size).collect();
    let mut parts = if starts.len() == 1 {
        vec![one(0)]
    } else {
        starts.into_par_iter().map(one).collect::<Vec<_>>()
    };
    let rest = parts.split_off(1);
    let Some(mut sums) = parts.pop() else { unreachable!("there is a row, so there is a run") };
    for part in rest {
        sums.iter_mut().zip(part).for_each(|(sum, s)| *sum += s);
    }
    if m == LANES {
        sums
    } else {
        sums.chunks_exact(LANES).flat_map(|row| &row[..m]).copied().collect()
    }
}

/// The sums of one run of rows, `[k, LANES]`.
struct Gradient<'a, A> {
    x: &'a [A],
    grad: &'a [A],
    k: usize,
    m: usize,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<A: Real> Vectorised for Gradient<'_, A> {
    type Out = Vec<A>;
    #[inline(always)]
    fn run(self) -> Vec<A> {
        let Self { x, grad, k, m } = self;
        let mut sums = vec![A::ZERO; k * LANES];
        let mut right = [A::ZERO; BLOCK * LANES];
        for (rows, grad) in x.chunks(BLOCK * k).zip(grad.chunks(BLOCK * m)) {
            for (to, row) in right.chunks_exact_mut(LANES).zip(grad.chunks_exact(m)) {
                to[..m].copy_from_slice(row);
            }
            let whole = k / COLUMNS * COLUMNS;
            for i in (0..whole).step_by(COLUMNS) {
                let mut acc = [Lanes::<A, LANES>::splat(A::ZERO); COLUMNS];
                for (row, right) in rows.chunks_exact(k).zip(right.chunks_exact(LANES)) {
                    let (left, right) = (&row[i..][..COLUMNS], Lanes::<A, LANES>::load(right, 0));
                    each!(c < COLUMNS, {
                        acc[c] = acc[c].add(right.scale(left[c]));
                    });
                }
                let sums = &mut sums[i * LANES..][..COLUMNS * LANES];
                each!(c < COLUMNS, {
                    for j in 0..LANES {
                        sums[c * LANES + j] += acc[c].0[j];
                    }
                });
            }
            for i in whole..k {
                outer::<A, 1>(
                    |r| &rows[r * k + i..][..1],
                    (&right, LANES),
                    rows.len() / k,
                    (&mut sums[i * LANES..], LANES),
                );
            }
        }
        sums
    }
}
