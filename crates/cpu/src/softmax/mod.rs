//! Computes softmax over the in-edges of every destination, or over the rows of every segment, and its gradient.
//!
//! ```text
//! parallel for runs of destinations with about equal numbers of edges:
//!   for v in run, for each block of columns:
//!     copy the logits of the in-edges of v to a small buffer, and find the maximum
//!     buffer = exp(buffer - maximum), summed in ascending edge id
//!     y[e] = buffer / sum
//! ```
//! Logits are stored in edge-id order, so rows are read and written at random addresses. The kernel reads and writes each
//! row once, and prefetches both: 0.62 to 0.65 times the time with prefetching into two cache levels
//! (docs/measurements/2026-11-24-specialised-kernels.md). Columns are processed in blocks of 8, 4 and 1, so that maximum
//! and sum stay in registers.
//!
//! The derivative is `∂L/∂x_e = y_e (g_e - Σ_e' y_e' g_e')`, with `g = ∂L/∂y`.

// One index runs over several arrays at once.
#![allow(clippy::needless_range_loop)]

pub(crate) mod segments;

use std::ops::Range;

use burn_gnn_plan::SoftmaxPlan;

use crate::math::softmax_shift::{divisor, shift};
use crate::number::{Acc, Elem, Exp};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::output_buffer::zeros;
use crate::parallel::runs::by_edges;
use crate::parallel::scatter::scatter;
use crate::parallel::scatter::{EdgeRows, Scattered};
use crate::prefetch::{FAR, from_memory};
use crate::simd::instruction_sets::{Vectorised, widest};
use burn_gnn_structure::internal::{Cache, prefetch, prefetch_to};

/// How many edges ahead rows are prefetched.
const AHEAD: usize = 16;
/// Entries per vectorised step of the exponential; a multiple of every block width.
const STEP: usize = 16;

/// A kernel for one run of destinations and the `W` columns from `at`.
trait Block<T: Elem>: Sync {
    fn block<const W: usize>(&self, run: Range<usize>, at: usize, out: &mut EdgeRows<'_, T>);
}

/// Runs a block kernel over all columns of all destinations.
fn all<T: Elem>(plan: &SoftmaxPlan, kernel: &impl Block<T>) -> Vec<T> {
    let (relation, width) = (plan.relation(), plan.width());
    if relation.num_edges() == 0 || width == 0 {
        return zeros(relation.num_edges() * width);
    }
    // Twice the width: an exponential costs as much as several additions.
    let runs = by_edges(relation.csc().indptr(), 2 * width);
    let out = Scattered::by_edge(Adjacency::new(relation.csc()), &runs, width);
    scatter(out, runs, &|run: Range<usize>, out| {
        out.all();
        let mut at = 0;
        while at < width {
            match width - at {
                8.. => kernel.block::<8>(run.clone(), at, out),
                4.. => kernel.block::<4>(run.clone(), at, out),
                _ => kernel.block::<1>(run.clone(), at, out),
            }
            at += match width - at {
                8.. => 8,
                4.. => 4,
                _ => 1,
            };
        }
    })
}

/// The softmax of logits, both `[num_edges, width]`.
pub(crate) fn forward<T: Elem>(plan: &SoftmaxPlan, x: &[T]) -> Vec<T> {
    match plan.as_segments() {
        Some(segments) => segments::forward(segments, plan.width(), x),
        None => all(plan, &Forward { plan, x }),
    }
}

/// The gradient of the logits, `y · (g - Σ y · g)`.
pub(crate) fn gradient<T: Elem>(plan: &SoftmaxPlan, y: &[T], grad: &[T]) -> Vec<T> {
    match plan.as_segments() {
        Some(segments) => segments::gradient(segments, plan.width(), y, grad),
        None => all(plan, &Backward { plan, y, grad }),
    }
}

struct Forward<'a, T> {
    plan: &'a SoftmaxPlan,
    x: &'a [T],
}

impl<T: Elem> Block<T> for Forward<'_, T> {
    fn block<const W: usize>(&self, run: Range<usize>, at: usize, out: &mut EdgeRows<'_, T>) {
        widest::<T, _>(ForwardRun::<T, W> { job: self, run, at, out });
    }
}

/// `W` entries of row `id`.
#[inline(always)]
fn entries<T, const W: usize>(data: &[T], id: usize, width: usize, at: usize) -> &[T; W] {
    match data[id * width + at..].first_chunk::<W>() {
        Some(entries) => entries,
        None => unreachable!("a block of columns is inside of its row"),
    }
}

struct ForwardRun<'a, 'o, T: Elem, const W: usize> {
    job: &'a Forward<'a, T>,
    run: Range<usize>,
    at: usize,
    out: &'a mut EdgeRows<'o, T>,
}

impl<T: Elem, const W: usize> Vectorised for ForwardRun<'_, '_, T, W> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { job: &Forward { plan, x }, run, at, out } = self;
        let (csc, width) = (Adjacency::new(plan.relation().csc()), plan.width());
        let (ids, end) = (csc.edge_ids, csc.indices.len());
        let id = |p: usize| ids.map_or(p, |ids| ids[p] as usize);
        let from_memory = from_memory(2 * size_of_val(x));
        out.pass(at..at + W);
        let mut buffer: Vec<T::Acc> = Vec::new();
        for v in run {
            let edges = csc.row(v);
            let len = (edges.len() * W).next_multiple_of(STEP);
            if buffer.len() < len {
                buffer.resize(len, T::Acc::ZERO);
            }
            let buffer = &mut buffer[..len];
            let (rows, _) = buffer.as_chunks_mut::<W>();
            let mut largest = [T::Acc::of_f64(f64::NEG_INFINITY); W];
            for (p, row) in edges.clone().zip(rows) {
                if from_memory && p + FAR * AHEAD < end {
                    let e = id(p + FAR * AHEAD);
                    prefetch_to(Cache::Second, x, e * width + at, W);
                    out.prefetch_to(Cache::Second, e, at, W);
                }
                if p + AHEAD < end {
                    let e = id(p + AHEAD);
                    prefetch(x, e * width + at, W);
                    out.prefetch(e, at, W);
                }
                let logits = entries::<T, W>(x, id(p), width, at);
                for j in 0..W {
                    let logit = logits[j].acc();
                    // NaN is never larger; it reaches the result through the sum.
                    largest[j] = if logit > largest[j] { logit } else { largest[j] };
                    row[j] = logit;
                }
            }
            let shift: [T::Acc; STEP] = std::array::from_fn(|i| shift(largest[i % W]));
            // Entries after the last edge belong to earlier rows; their results are not read.
            for step in buffer.as_chunks_mut::<STEP>().0 {
                for i in 0..STEP {
                    step[i] = (step[i] - shift[i]).exp_();
                }
            }
            let (rows, _) = buffer.as_chunks::<W>();
            let mut sum = [T::Acc::ZERO; W];
            for row in &rows[..edges.len()] {
                for j in 0..W {
                    sum[j] += row[j];
                }
            }
            for j in 0..W {
                sum[j] = divisor(sum[j]);
            }
            for row in &rows[..edges.len()] {
                out.put(W, |to| to.put_from(W, |j| T::of(row[j] / sum[j])));
            }
        }
    }
}

struct Backward<'a, T> {
    plan: &'a SoftmaxPlan,
    y: &'a [T],
    grad: &'a [T],
}

impl<T: Elem> Block<T> for Backward<'_, T> {
    fn block<const W: usize>(&self, run: Range<usize>, at: usize, out: &mut EdgeRows<'_, T>) {
        widest::<T, _>(BackwardRun::<T, W> { job: self, run, at, out });
    }
}

struct BackwardRun<'a, 'o, T: Elem, const W: usize> {
    job: &'a Backward<'a, T>,
    run: Range<usize>,
    at: usize,
    out: &'a mut EdgeRows<'o, T>,
}

impl<T: Elem, const W: usize> Vectorised for BackwardRun<'_, '_, T, W> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { job: &Backward { plan, y, grad }, run, at, out } = self;
        let (csc, width) = (Adjacency::new(plan.relation().csc()), plan.width());
        let (ids, end) = (csc.edge_ids, csc.indices.len());
        let id = |p: usize| ids.map_or(p, |ids| ids[p] as usize);
        let from_memory = from_memory(3 * size_of_val(y));
        out.pass(at..at + W);
        for v in run {
            let edges = csc.row(v);
            let mut sum = [T::Acc::ZERO; W];
            for p in edges.clone() {
                if from_memory && p + FAR * AHEAD < end {
                    let e = id(p + FAR * AHEAD);
                    prefetch_to(Cache::Second, y, e * width + at, W);
                    prefetch_to(Cache::Second, grad, e * width + at, W);
                    out.prefetch_to(Cache::Second, e, at, W);
                }
                if p + AHEAD < end {
                    let e = id(p + AHEAD);
                    prefetch(y, e * width + at, W);
                    prefetch(grad, e * width + at, W);
                    out.prefetch(e, at, W);
                }
                let (y, g) =
                    (entries::<T, W>(y, id(p), width, at), entries::<T, W>(grad, id(p), width, at));
                for j in 0..W {
                    sum[j] += y[j].acc() * g[j].acc();
                }
            }
            for p in edges {
                let (y, g) =
                    (entries::<T, W>(y, id(p), width, at), entries::<T, W>(grad, id(p), width, at));
                out.put(W, |to| to.put_from(W, |j| T::of(y[j].acc() * (g[j].acc() - sum[j]))));
            }
        }
    }
}
