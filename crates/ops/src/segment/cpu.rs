//! Softmax over segments on CPU: two walks over a segment's rows, the second finds them in cache.

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor;

use super::backend::{SegmentBackend, SegmentPlan};
use crate::cpu::Host;
use crate::kernel::{Elem, Exp, Vectorised, by_edges, collect_rows, divisor, shift, vectorised};
use crate::typed::real::{Real, by_real, narrow, widen};

/// One segment: `rows` in, `out` of the same length; `stats` are two numbers per column.
struct Softmax<'a, A> {
    rows: &'a [A],
    out: &'a mut [A],
    stats: &'a mut [A],
    width: usize,
}

impl<A: Real + Exp> Vectorised for Softmax<'_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { rows, out, stats, width } = self;
        let (largest, sum) = stats.split_at_mut(width);
        largest.copy_from_slice(&rows[..width]);
        for row in rows.chunks_exact(width) {
            for (m, &x) in largest.iter_mut().zip(row) {
                *m = if x > *m { x } else { *m };
            }
        }
        largest.iter_mut().for_each(|m| *m = shift(*m));
        sum.fill(A::ZERO);
        for (row, to) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for (((t, &x), &m), s) in to.iter_mut().zip(row).zip(largest.iter()).zip(sum.iter_mut()) {
                let e = (x - m).exp_();
                *t = e;
                *s += e;
            }
        }
        sum.iter_mut().for_each(|s| *s = divisor(*s));
        for to in out.chunks_exact_mut(width) {
            for (t, &s) in to.iter_mut().zip(sum.iter()) {
                *t = *t / s;
            }
        }
    }
}

/// `out = y · (grad - Σ grad · y)` of one segment.
struct Gradient<'a, A> {
    grad: &'a [A],
    y: &'a [A],
    out: &'a mut [A],
    sum: &'a mut [A],
}

impl<A: Real> Vectorised for Gradient<'_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { grad, y, out, sum } = self;
        let width = sum.len();
        sum.fill(A::ZERO);
        for (g, y) in grad.chunks_exact(width).zip(y.chunks_exact(width)) {
            for ((s, &g), &y) in sum.iter_mut().zip(g).zip(y) {
                *s += g * y;
            }
        }
        for ((to, g), y) in out.chunks_exact_mut(width).zip(grad.chunks_exact(width)).zip(y.chunks_exact(width)) {
            for (((t, &g), &y), &s) in to.iter_mut().zip(g).zip(y).zip(sum.iter()) {
                *t = y * (g - s);
            }
        }
    }
}

/// Works on the rows of one segment, their part of the result, and two numbers per column.
type Work<'a, A> = dyn Fn(std::ops::Range<usize>, &mut [A], &mut [A]) + Sync + 'a;

/// Calls `work` for every segment.
fn by_segment<A: Real>(plan: &SegmentPlan, cost: usize, work: &Work<'_, A>) -> Vec<A> {
    let segments = plan.segments();
    let width: usize = plan.features().iter().product();
    if width == 0 || segments.num_rows() == 0 {
        return Vec::new();
    }
    // Runs of whole segments, then their rows.
    let runs = by_edges(segments.offsets(), width.saturating_mul(cost));
    let rows: Vec<_> = runs.iter().map(|r| segments.offsets()[r.start] as usize..segments.offsets()[r.end] as usize).collect();
    collect_rows(&rows, width, &|run, sink| {
        let (mut out, mut stats) = (Vec::new(), vec![A::ZERO; 2 * width]);
        let first = segments.offsets().partition_point(|&o| (o as usize) < run.start);
        let mut k = first.min(segments.len());
        while k < segments.len() && segments.range(k).end <= run.end {
            let range = segments.range(k);
            if !range.is_empty() && range.start >= run.start {
                out.resize(range.len() * width, A::ZERO);
                work(range.start * width..range.end * width, &mut out, &mut stats);
                sink.put(&out);
            }
            k += 1;
        }
    })
}

fn softmax<B: Host, T: Elem<Acc = A>, A: Real + Exp>(x: &FloatTensor<B>, plan: &SegmentPlan) -> FloatTensor<B> {
    let x = widen::<B, T, A>(x);
    let width = plan.features().iter().product();
    let out = by_segment(plan, 16, &|at, out, stats| vectorised(Softmax { rows: &x[at], out, stats, width }));
    narrow::<B, T, A>(out, plan.shape())
}

fn gradient<B: Host, T: Elem<Acc = A>, A: Real>(grad: &FloatTensor<B>, y: &FloatTensor<B>, plan: &SegmentPlan) -> FloatTensor<B> {
    let (grad, y) = (widen::<B, T, A>(grad), widen::<B, T, A>(y));
    let width: usize = plan.features().iter().product();
    let out = by_segment(plan, 4, &|at, out, stats| {
        vectorised(Gradient { grad: &grad[at.clone()], y: &y[at], out, sum: &mut stats[..width] });
    });
    narrow::<B, T, A>(out, plan.shape())
}

macro_rules! implement {
    ($backend:ty) => {
        impl SegmentBackend for $backend {
            fn segment_softmax(x: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&x), softmax::<Self>(&x, &plan))
            }
            fn segment_softmax_grad(grad: FloatTensor<Self>, y: FloatTensor<Self>, plan: SegmentPlan) -> FloatTensor<Self> {
                by_real!(TensorMetadata::dtype(&grad), gradient::<Self>(&grad, &y, &plan))
            }
        }
    };
}

#[cfg(feature = "flex")]
implement!(burn::backend::Flex);
#[cfg(feature = "ndarray")]
implement!(burn::backend::NdArray);
