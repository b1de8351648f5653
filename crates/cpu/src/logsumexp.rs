//! Computes the log-sum-exp of segments, and its gradient.
//!
//! Like softmax it makes two passes over the rows of a segment; in the second pass they are in cache. The derivative is
//! `∂L/∂x = ∂L/∂out · softmax(x)`.

use burn_gnn_plan::LogSumExpPlan;

use crate::dense::widen::put_sums;
use crate::math::softmax_shift::{divisor, shift};
use crate::number::{Acc, Elem, Exp};
use crate::parallel::collect::collect_rows;
use crate::parallel::runs::by_edges;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use crate::softmax::segments::{by_segment, column_max, exponentials};

/// Computes the maximum and the sum of exponentials of every column of a segment.
struct Sums<'a, T: Elem> {
    rows: &'a [T],
    largest: &'a mut [T::Acc],
    sum: &'a mut [T::Acc],
}

impl<T: Elem> Vectorised for Sums<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { rows, largest, sum } = self;
        column_max(rows, largest);
        // With a shift of 0, an infinite entry gives an infinite sum, and so the correct logarithm.
        let infinite = T::Acc::of_f64(f64::INFINITY);
        for m in largest.iter_mut() {
            *m = if *m == infinite { T::Acc::ZERO } else { shift(*m) };
        }
        sum.fill(T::Acc::ZERO);
        for row in rows.chunks_exact(largest.len()) {
            for ((x, &m), s) in row.iter().zip(largest.iter()).zip(sum.iter_mut()) {
                *s += (x.acc() - m).exp_();
            }
        }
    }
}

/// `log Σ exp` of the rows of every segment; 0 for empty segments.
pub(crate) fn forward<T: Elem>(plan: &LogSumExpPlan, x: &[T]) -> Vec<T> {
    let (segments, width) = (plan.segments(), plan.width());
    if width == 0 {
        return Vec::new();
    }
    let runs = by_edges(segments.offsets(), width.saturating_mul(8));
    collect_rows(&runs, width, &|run, sink| {
        let (mut largest, mut sum) = (vec![T::Acc::ZERO; width], vec![T::Acc::ZERO; width]);
        for range in run.map(|k| segments.range(k)) {
            largest.fill(T::Acc::ZERO);
            if !range.is_empty() {
                let rows = &x[range.start * width..range.end * width];
                vectorised(Sums { rows, largest: &mut largest, sum: &mut sum });
                for (m, &s) in largest.iter_mut().zip(&sum) {
                    *m += T::Acc::of_f64(Into::<f64>::into(s).ln());
                }
            }
            put_sums(&largest, sink);
        }
    })
}

/// Computes `grad · softmax(rows)` of a segment; `grad` is one row.
struct Gradient<'a, T: Elem> {
    rows: &'a [T],
    grad: &'a [T],
    out: &'a mut [T::Acc],
    stats: &'a mut [T::Acc],
}

impl<T: Elem> Vectorised for Gradient<'_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { rows, grad, out, stats } = self;
        let width = grad.len();
        let (largest, sum) = stats.split_at_mut(width);
        exponentials(rows, out, largest, sum);
        for (s, g) in sum.iter_mut().zip(grad) {
            *s = g.acc() / divisor(*s);
        }
        for to in out.chunks_exact_mut(width) {
            to.iter_mut().zip(sum.iter()).for_each(|(t, &s)| *t = *t * s);
        }
    }
}

/// The gradient of every row, from the gradient of every segment.
pub(crate) fn gradient<T: Elem>(plan: &LogSumExpPlan, x: &[T], grad: &[T]) -> Vec<T> {
    let width = plan.width();
    by_segment::<T>(plan.segments(), width, 16, &|k, at, out, stats| {
        let grad = &grad[k * width..][..width];
        vectorised(Gradient { rows: &x[at], grad, out, stats });
    })
}
