//! Computes softmax over segments.
//!
//! It makes two passes over the rows of a segment; in the second pass they are in cache. Segments of f16 and bf16 are
//! computed in f32 and rounded once.

use burn_gnn_plan::Segments;

use crate::dense::widen::put_sums;
use crate::math::softmax_shift::{divisor, shift};
use crate::number::{Acc, Elem, Exp};
use crate::parallel::collect::collect_rows;
use crate::parallel::runs::by_edges;
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// The maximum of every column; `rows` is not empty. A NaN counts only if it is in the first row.
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

/// Computes `exp(rows - largest)` and its column sums, where `largest` is the maximum of every column, or 0 if that is
/// -inf.
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

/// Computes the softmax of a segment. `out` has the length of `rows`, and `stats` two numbers per column.
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

/// Computes `out = y · (grad - Σ grad · y)` of a segment.
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

/// Computes one segment from its number and the range of its entries, into its part of the result. The last argument is a
/// buffer of two numbers per column.
pub(crate) type Work<'a, A> = dyn Fn(usize, std::ops::Range<usize>, &mut [A], &mut [A]) + Sync + 'a;

/// Calls `work` for every segment, and rounds the results.
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

/// The softmax of logits.
pub(super) fn forward<T: Elem>(segments: &Segments, width: usize, x: &[T]) -> Vec<T> {
    by_segment::<T>(segments, width, 16, &|_, at, out, stats| {
        vectorised(Softmax { rows: &x[at], out, stats, width })
    })
}

/// The gradient of the logits, `y · (g - Σ y · g)`.
pub(super) fn gradient<T: Elem>(segments: &Segments, width: usize, y: &[T], grad: &[T]) -> Vec<T> {
    by_segment::<T>(segments, width, 4, &|_, at, out, stats| {
        vectorised(Gradient { grad: &grad[at.clone()], y: &y[at], out, sum: &mut stats[..width] });
    })
}
