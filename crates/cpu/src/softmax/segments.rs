//! Computes softmax over segments.
//!
//! Two passes over the rows of a segment, the second of which finds them in cache. f16 and bf16 are read as they are; a
//! segment is computed in f32 and rounded when it is written.

use burn_gnn_plan::Segments;

use crate::dense::widen::put_sums;
use crate::math::softmax_shift::{divisor, shift};
use crate::number::{Acc, Elem, Exp};
use crate::parallel::collect::collect_rows;
use crate::parallel::runs::by_edges;
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// The largest entry of every column of some rows, of which there is one; NaN only where the first row has it.
#[inline(always)]
pub(crate) fn column_max<T: Elem>(rows: &[T], largest: &mut [T::Acc]) {
    largest.iter_mut().zip(rows).for_each(|(m, x)| *m = x.acc());
    for row in rows.chunks_exact(largest.len()) {
        for (m, x) in largest.iter_mut().zip(row) {
            let x = x.acc();
            *m = if x > *m { x } else { *m };
        }
    }
}

/// Exponentials of rows less the largest entry of every column, and their sums; `largest` is 0 for masks only.
#[inline(always)]
pub(crate) fn exponentials<T: Elem>(
    rows: &[T],
    out: &mut [T::Acc],
    largest: &mut [T::Acc],
    sum: &mut [T::Acc],
) {
    let width = sum.len();
    column_max(rows, largest);
    largest.iter_mut().for_each(|m| *m = shift(*m));
    sum.fill(T::Acc::ZERO);
    for (row, to) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        for (((t, x), &m), s) in to.iter_mut().zip(row).zip(largest.iter()).zip(sum.iter_mut()) {
            let e = (x.acc() - m).exp_();
            *t = e;
            *s += e;
        }
    }
}

/// One segment: `rows` in, `out` of the same length; `stats` are two numbers per column.
struct Softmax<'a, T: Elem> {
    rows: &'a [T],
    out: &'a mut [T::Acc],
    stats: &'a mut [T::Acc],
    width: usize,
}

impl<T: Elem> Vectorised for Softmax<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { rows, out, stats, width } = self;
        let (largest, sum) = stats.split_at_mut(width);
        exponentials(rows, out, largest, sum);
        sum.iter_mut().for_each(|s| *s = divisor(*s));
        for to in out.chunks_exact_mut(width) {
            for (t, &s) in to.iter_mut().zip(sum.iter()) {
                *t = *t / s;
            }
        }
    }
}

/// `out = y · (grad - Σ grad · y)` of one segment.
struct Gradient<'a, T: Elem> {
    grad: &'a [T],
    y: &'a [T],
    out: &'a mut [T::Acc],
    sum: &'a mut [T::Acc],
}

impl<T: Elem> Vectorised for Gradient<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { grad, y, out, sum } = self;
        let width = sum.len();
        sum.fill(T::Acc::ZERO);
        for (g, y) in grad.chunks_exact(width).zip(y.chunks_exact(width)) {
            for ((s, g), y) in sum.iter_mut().zip(g).zip(y) {
                *s += g.acc() * y.acc();
            }
        }
        for ((to, g), y) in
            out.chunks_exact_mut(width).zip(grad.chunks_exact(width)).zip(y.chunks_exact(width))
        {
            for (((t, g), y), &s) in to.iter_mut().zip(g).zip(y).zip(sum.iter()) {
                *t = y.acc() * (g.acc() - s);
            }
        }
    }
}

/// Works on one segment by its number, the entries of its rows, their part of the result, and two numbers per column.
pub(crate) type Work<'a, A> = dyn Fn(usize, std::ops::Range<usize>, &mut [A], &mut [A]) + Sync + 'a;

/// Calls `work` for every segment.
pub(crate) fn by_segment<T: Elem>(
    segments: &Segments,
    width: usize,
    cost: usize,
    work: &Work<'_, T::Acc>,
) -> Vec<T> {
    if width == 0 || segments.num_rows() == 0 {
        return Vec::new();
    }
    // Runs of whole segments, then their rows.
    let runs = by_edges(segments.offsets(), width.saturating_mul(cost));
    let rows: Vec<_> = runs
        .iter()
        .map(|r| segments.offsets()[r.start] as usize..segments.offsets()[r.end] as usize)
        .collect();
    collect_rows(&rows, width, &|run, sink| {
        let (mut out, mut stats) = (Vec::new(), vec![T::Acc::ZERO; 2 * width]);
        let first = segments.offsets().partition_point(|&o| (o as usize) < run.start);
        let mut k = first.min(segments.len());
        while k < segments.len() && segments.range(k).end <= run.end {
            let range = segments.range(k);
            if !range.is_empty() && range.start >= run.start {
                out.resize(range.len() * width, T::Acc::ZERO);
                work(k, range.start * width..range.end * width, &mut out, &mut stats);
                put_sums(&out, sink);
            }
            k += 1;
        }
    })
}

/// Probabilities from logits.
pub(super) fn forward<T: Elem>(segments: &Segments, width: usize, x: &[T]) -> Vec<T> {
    by_segment::<T>(segments, width, 16, &|_, at, out, stats| {
        vectorised(Softmax { rows: &x[at], out, stats, width })
    })
}

/// `y · (g - Σ y · g)`.
pub(super) fn gradient<T: Elem>(segments: &Segments, width: usize, y: &[T], grad: &[T]) -> Vec<T> {
    by_segment::<T>(segments, width, 4, &|_, at, out, stats| {
        vectorised(Gradient { grad: &grad[at.clone()], y: &y[at], out, sum: &mut stats[..width] });
    })
}
