//! Products with a matrix of at most 16 columns, as the first layer of a small network has: `gemm` reads such operands
//! with long strides (23 GFLOP/s on one core for rows of 1433 and 16 columns, where 8 rows at a time in registers reach 60,
//! and their gradient 45).
//!
//! Sums run in ascending inner index without fused multiply-add, so bits are the same on every instruction set and for
//! any number of rows and threads.

use std::ops::Range;

use rayon::prelude::*;

use crate::kernel::gather::each;
use crate::kernel::lanes::Lanes;
use crate::kernel::{Sink, Vectorised, collect_rows, evenly, vectorised};
use crate::typed::dense::{LANES, Panels, outer, product};
use crate::typed::real::Real;

/// Rows whose sums stay in registers together.
const ROWS: usize = 8;
/// Columns of the left operand whose sums stay in registers together.
const COLUMNS: usize = 8;
/// Rows between two looks at the same sums: few, as neighbouring columns of all of them should still be in the cache.
const BLOCK: usize = 32;
/// Runs of rows with sums of their own, and rows of the smallest one.
const MAX_RUNS: usize = 64;
const MIN_RUN: usize = 512;

/// Whether results of `n` columns are made here.
pub(super) fn suits(n: usize) -> bool {
    n <= LANES
}

/// `x · w`, with `base` added, for `[n, k] · [k, m]`.
pub(super) fn forward<A: Real>(x: &[A], w: &[A], base: Option<&[A]>, [n, k, m]: [usize; 3]) -> Vec<A> {
    let panels = Panels::new(w, k, m, false);
    collect_rows(&evenly(n, k * m), m, &|run, sink| {
        vectorised(Forward { x, panel: panels.matrix(0), base, k, m, run, sink });
    })
}

struct Forward<'a, 's, A> {
    x: &'a [A],
    panel: &'a [A],
    base: Option<&'a [A]>,
    k: usize,
    m: usize,
    run: Range<usize>,
    sink: &'a mut Sink<'s, A>,
}

impl<A: Real> Forward<'_, '_, A> {
    #[inline(always)]
    fn rows<const M: usize>(&mut self, from: usize) {
        let sums = product::<A, M>(std::array::from_fn(|r| &self.x[(from + r) * self.k..][..self.k]), self.panel);
        for (r, mut row) in (from..).zip(sums) {
            if let Some(base) = self.base {
                row.iter_mut().zip(&base[r * self.m..][..self.m]).for_each(|(sum, &b)| *sum += b);
            }
            if self.m == LANES { self.sink.put(&row) } else { self.sink.put(&row[..self.m]) }
        }
    }
}

impl<A: Real> Vectorised for Forward<'_, '_, A> {
    type Out = ();
    #[inline(always)]
    fn run(mut self) {
        let mut at = self.run.start;
        while at + ROWS <= self.run.end {
            self.rows::<ROWS>(at);
            at += ROWS;
        }
        for row in at..self.run.end {
            self.rows::<1>(row);
        }
    }
}

/// `xᵀ · grad` for `x: [n, k]` and `grad: [n, m]`.
///
/// Rows go in runs whose number depends on `n` alone, each into sums of its own, which are then added in order.
pub(super) fn gradient<A: Real>(x: &[A], grad: &[A], [n, k, m]: [usize; 3]) -> Vec<A> {
    let size = n.div_ceil(MAX_RUNS).max(MIN_RUN);
    let one = |from: usize| {
        let rows = from..(from + size).min(n);
        vectorised(Gradient { x: &x[rows.start * k..rows.end * k], grad: &grad[rows.start * m..rows.end * m], k, m })
    };
    let starts: Vec<usize> = (0..n).step_by(size).collect();
    let mut parts = if starts.len() == 1 { vec![one(0)] } else { starts.into_par_iter().map(one).collect::<Vec<_>>() };
    let rest = parts.split_off(1);
    let Some(mut sums) = parts.pop() else { unreachable!("there is a row, so there is a run") };
    for part in rest {
        sums.iter_mut().zip(part).for_each(|(sum, s)| *sum += s);
    }
    if m == LANES { sums } else { sums.chunks_exact(LANES).flat_map(|row| &row[..m]).copied().collect() }
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
                outer::<A, 1>(|r| &rows[r * k + i..][..1], (&right, LANES), rows.len() / k, (&mut sums[i * LANES..], LANES));
            }
        }
        sums
    }
}
