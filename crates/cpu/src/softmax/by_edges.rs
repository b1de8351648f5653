//! Edge softmax in the order of edges, with a table of one row per node that stays in the cache.
//!
//! ```text
//! for each of 4 slices of the edges:  table[v] = max(table[v], x[e])     x in one stream
//! for each slice:                     table[v] += exp(x[e] - max[v])         x again
//! for all edges:                      y[e] = exp(x[e] - max[v]) / sum[v]     x again, y in one stream
//! ```
//! An exponential is cheaper than its way to memory and back, so it is taken twice rather than kept.
//!
//! Where logits are far larger than the cache and edges are not sorted, a walk over nodes waits for one
//! cache line per edge to read and one to write. Here the memory is read and written in streams, and
//! what is anywhere is in the cache. A slice has one writer and its own table; tables are added in order of
//! slices. The walk over nodes adds in the same order ([`slices`]), so both have the same bits, and how many
//! threads there are may decide.

// Fixed lanes and columns of several rows at once: one index says it best.
#![allow(clippy::needless_range_loop)]

use std::ops::Range;

use rayon::prelude::*;

use super::{STEP, entries};
use crate::{Acc, Elem, Exp, Sink, Vectorised, collect_rows, divisor, evenly, prefetch, shift, widest};
use burn_gnn_plan::SoftmaxPlan;

/// Slices of a large problem; more threads than that walk over nodes.
pub(super) const SLICES: usize = 4;
/// Edges between asking for a row of a table and using it.
const AHEAD: usize = 32;
/// Edges whose exponentials are taken together.
const BATCH: usize = 64;

/// How far edges go into partial sums: all to one, or to one for each of 4 slices where the problem is
/// large. A matter of the problem alone, so that bits do not depend on the machine.
pub(super) fn slices<T: Elem>(plan: &SoftmaxPlan) -> usize {
    let relation = plan.relation();
    let bytes = relation.num_edges() * plan.width() * size_of::<T>();
    // Half floats, whose rows are half as long, have not been measured.
    let exact = size_of::<T>() == size_of::<T::Acc>();
    if exact && bytes >= LARGE && relation.csc().edge_ids().is_some() { SLICES } else { 1 }
}

/// Bytes of logits from which the order of edges can pay, and bytes of a table up to which it does.
#[cfg(not(test))]
const LARGE: usize = 16 << 20;
#[cfg(test)]
const LARGE: usize = 1 << 10;
const CACHED: usize = 16 << 20;

/// Whether the order of edges is the faster one.
pub(super) fn pays<T: Elem>(plan: &SoftmaxPlan) -> bool {
    let relation = plan.relation();
    let table = relation.num_dst() * plan.width() * size_of::<T>();
    // A table costs about as much as an edge row per node and slice.
    let dense = relation.num_dst() * SLICES <= relation.num_edges();
    slices::<T>(plan) > 1 && rayon::current_num_threads() <= SLICES && table <= CACHED && dense
}

/// Where slice `s` of `n` ends.
pub(super) fn end(num_edges: usize, s: usize, n: usize) -> usize {
    // At most 2^32 edges times 4.
    num_edges * (s + 1) / n
}

fn runs(num_edges: usize) -> Vec<Range<usize>> {
    (0..SLICES).map(|s| if s == 0 { 0 } else { end(num_edges, s - 1, SLICES) }..end(num_edges, s, SLICES)).collect()
}

/// Runs `$body` with `$h` the width if it is a common one, else 0.
macro_rules! by_width {
    ($width:expr, $h:ident => $body:expr) => {
        match $width {
            1 => {
                const $h: usize = 1;
                $body
            }
            4 => {
                const $h: usize = 4;
                $body
            }
            8 => {
                const $h: usize = 8;
                $body
            }
            _ => {
                const $h: usize = 0;
                $body
            }
        }
    };
}

/// The width, as a constant where it is one.
#[inline(always)]
fn known<const H: usize>(plan: &SoftmaxPlan) -> usize {
    if H == 0 { plan.width() } else { H }
}

/// A pass over a run of edges, for `W` columns from `at`, that may change a table of node rows.
trait Pass<T: Elem>: Sync {
    fn pass<const W: usize>(&self, run: Range<usize>, at: usize, table: &mut [T::Acc]);
}

/// Runs a pass over all columns.
fn columns<T: Elem>(width: usize, pass: &impl Pass<T>, run: &Range<usize>, table: &mut [T::Acc]) {
    let mut at = 0;
    while at < width {
        let w = match width - at {
            8.. => {
                pass.pass::<8>(run.clone(), at, table);
                8
            }
            4.. => {
                pass.pass::<4>(run.clone(), at, table);
                4
            }
            _ => {
                pass.pass::<1>(run.clone(), at, table);
                1
            }
        };
        at += w;
    }
}

/// The tables of all slices as one, every entry of which goes through `last`.
fn join<A: Acc>(mut tables: Vec<Vec<A>>, join: impl Fn(A, A) -> A + Sync, last: impl Fn(A) -> A + Sync) -> Vec<A> {
    let rest = tables.split_off(1);
    let Some(mut first) = tables.pop() else { unreachable!("there is a first slice") };
    const PART: usize = 1 << 16;
    first.par_chunks_mut(PART).enumerate().for_each(|(i, part)| {
        for table in &rest {
            part.iter_mut().zip(&table[i * PART..]).for_each(|(a, &b)| *a = join(*a, b));
        }
        part.iter_mut().for_each(|a| *a = last(*a));
    });
    first
}

/// A table filled by a pass over the edges of each slice.
fn table<T: Elem>(
    plan: &SoftmaxPlan,
    start: T::Acc,
    pass: &impl Pass<T>,
    add: impl Fn(T::Acc, T::Acc) -> T::Acc + Sync,
    last: impl Fn(T::Acc) -> T::Acc + Sync,
) -> Vec<T::Acc> {
    let (relation, width) = (plan.relation(), plan.width());
    let tables = runs(relation.num_edges())
        .par_iter()
        .map(|run| {
            let mut table = vec![start; relation.num_dst() * width];
            columns::<T>(width, pass, run, &mut table);
            table
        })
        .collect();
    join(tables, add, last)
}

/// Probabilities from logits.
pub(super) fn forward<T: Elem>(plan: &SoftmaxPlan, x: &[T]) -> Vec<T> {
    let width = plan.width();
    let lowest = T::Acc::of_f64(f64::NEG_INFINITY);
    let largest = table::<T>(plan, lowest, &Largest { plan, x }, |a, b| if b > a { b } else { a }, shift);
    let sums = table::<T>(plan, T::Acc::ZERO, &Sums { plan, x, largest: &largest }, |a, b| a + b, divisor);
    // Side by side: for eight heads an edge finds both in one cache line.
    let mut nodes = vec![T::Acc::ZERO; 2 * sums.len()];
    nodes.par_chunks_mut(2 * width).zip(largest.par_chunks(width)).zip(sums.par_chunks(width)).with_min_len(1 << 12).for_each(
        |((node, largest), sum)| {
            let (shift, divisor) = node.split_at_mut(width);
            shift.copy_from_slice(largest);
            divisor.copy_from_slice(sum);
        },
    );
    let runs = evenly(plan.relation().num_edges(), 2 * width);
    collect_rows(&runs, width, &|run, sink| {
        by_width!(width, H => widest::<T, _>(Probabilities::<T, H> { plan, x, nodes: &nodes, run, sink }));
    })
}

/// `y · (g - Σ y · g)`.
pub(super) fn gradient<T: Elem>(plan: &SoftmaxPlan, y: &[T], grad: &[T]) -> Vec<T> {
    let sums = table::<T>(plan, T::Acc::ZERO, &Products { plan, y, grad }, |a, b| a + b, |sum| sum);
    let runs = evenly(plan.relation().num_edges(), 2 * plan.width());
    collect_rows(&runs, plan.width(), &|run, sink| {
        by_width!(plan.width(), H => widest::<T, _>(Finish::<T, H> { plan, y, grad, sums: &sums, run, sink }));
    })
}

/// `W` entries of row `row` of a table, to be changed.
#[inline(always)]
fn entries_mut<A, const W: usize>(table: &mut [A], row: usize, width: usize, at: usize) -> &mut [A; W] {
    match table[row * width + at..].first_chunk_mut::<W>() {
        Some(entries) => entries,
        None => unreachable!("a block lies inside its row"),
    }
}

/// Asks for a row of a table.
#[inline(always)]
fn ask<A>(dst: &[u32], e: usize, table: &[A], width: usize, at: usize, len: usize) {
    if let Some(&v) = dst.get(e + AHEAD) {
        prefetch(table, v as usize * width + at, len);
    }
}

struct Largest<'a, T> {
    plan: &'a SoftmaxPlan,
    x: &'a [T],
}

impl<T: Elem> Pass<T> for Largest<'_, T> {
    fn pass<const W: usize>(&self, run: Range<usize>, at: usize, table: &mut [T::Acc]) {
        widest::<T, _>(LargestRun::<T, W> { job: self, run, at, table });
    }
}

struct LargestRun<'a, T: Elem, const W: usize> {
    job: &'a Largest<'a, T>,
    run: Range<usize>,
    at: usize,
    table: &'a mut [T::Acc],
}

impl<T: Elem, const W: usize> Vectorised for LargestRun<'_, T, W> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { job: &Largest { plan, x }, run, at, table } = self;
        let (dst, width) = (plan.relation().dst(), plan.width());
        for e in run {
            ask(dst, e, table, width, at, W);
            let row = entries::<T, W>(x, e, width, at);
            let largest = entries_mut::<T::Acc, W>(table, dst[e] as usize, width, at);
            for j in 0..W {
                let logit = row[j].acc();
                largest[j] = if logit > largest[j] { logit } else { largest[j] };
            }
        }
    }
}

struct Products<'a, T> {
    plan: &'a SoftmaxPlan,
    y: &'a [T],
    grad: &'a [T],
}

impl<T: Elem> Pass<T> for Products<'_, T> {
    fn pass<const W: usize>(&self, run: Range<usize>, at: usize, table: &mut [T::Acc]) {
        widest::<T, _>(ProductsRun::<T, W> { job: self, run, at, table });
    }
}

struct ProductsRun<'a, T: Elem, const W: usize> {
    job: &'a Products<'a, T>,
    run: Range<usize>,
    at: usize,
    table: &'a mut [T::Acc],
}

impl<T: Elem, const W: usize> Vectorised for ProductsRun<'_, T, W> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { job: &Products { plan, y, grad }, run, at, table } = self;
        let (dst, width) = (plan.relation().dst(), plan.width());
        for e in run {
            ask(dst, e, table, width, at, W);
            let (y, g) = (entries::<T, W>(y, e, width, at), entries::<T, W>(grad, e, width, at));
            let sum = entries_mut::<T::Acc, W>(table, dst[e] as usize, width, at);
            for j in 0..W {
                sum[j] += y[j].acc() * g[j].acc();
            }
        }
    }
}

struct Sums<'a, T: Elem> {
    plan: &'a SoftmaxPlan,
    x: &'a [T],
    largest: &'a [T::Acc],
}

impl<T: Elem> Pass<T> for Sums<'_, T> {
    fn pass<const W: usize>(&self, run: Range<usize>, at: usize, table: &mut [T::Acc]) {
        widest::<T, _>(SumsRun::<T, W> { job: self, run, at, table });
    }
}

struct SumsRun<'a, T: Elem, const W: usize> {
    job: &'a Sums<'a, T>,
    run: Range<usize>,
    at: usize,
    table: &'a mut [T::Acc],
}

impl<T: Elem, const W: usize> Vectorised for SumsRun<'_, T, W> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { job: &Sums { plan, x, largest }, run, at, table } = self;
        let (dst, width) = (plan.relation().dst(), plan.width());
        let mut buffer = [[T::Acc::ZERO; W]; BATCH];
        for first in run.clone().step_by(BATCH) {
            let batch = first..(first + BATCH).min(run.end);
            for (e, to) in batch.clone().zip(&mut buffer) {
                ask(dst, e, largest, width, at, W);
                ask(dst, e, table, width, at, W);
                let logits = entries::<T, W>(x, e, width, at);
                let shift = entries::<T::Acc, W>(largest, dst[e] as usize, width, at);
                for j in 0..W {
                    to[j] = logits[j].acc() - shift[j];
                }
            }
            exponentials(buffer.as_flattened_mut());
            for (e, from) in batch.zip(&buffer) {
                let sum = entries_mut::<T::Acc, W>(table, dst[e] as usize, width, at);
                for j in 0..W {
                    sum[j] += from[j];
                }
            }
        }
    }
}

/// The exponential of every entry, whole steps at a time. Entries behind the last edge are left over from batches
/// before; nobody reads what becomes of them.
#[inline(always)]
fn exponentials<A: Acc + Exp>(buffer: &mut [A]) {
    for step in buffer.as_chunks_mut::<STEP>().0 {
        for e in step {
            *e = e.exp_();
        }
    }
}

struct Probabilities<'a, 's, 'o, T: Elem, const H: usize> {
    plan: &'a SoftmaxPlan,
    x: &'a [T],
    /// The shift of a node's logits, then what exponentials are divided by.
    nodes: &'a [T::Acc],
    run: Range<usize>,
    sink: &'s mut Sink<'o, T>,
}

impl<T: Elem, const H: usize> Vectorised for Probabilities<'_, '_, '_, T, H> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { plan, x, nodes, run, sink } = self;
        let (dst, width) = (plan.relation().dst(), known::<H>(plan));
        let mut buffer = vec![T::Acc::ZERO; (BATCH * width).next_multiple_of(STEP)];
        for first in run.clone().step_by(BATCH) {
            let batch = first..(first + BATCH).min(run.end);
            for (e, to) in batch.clone().zip(buffer.chunks_exact_mut(width)) {
                ask(dst, e, nodes, 2 * width, 0, 2 * width.min(16));
                let (logits, shift) = (&x[e * width..][..width], &nodes[dst[e] as usize * 2 * width..][..width]);
                blocks(width, to, |_, j| logits[j].acc() - shift[j]);
            }
            exponentials(&mut buffer);
            for (e, to) in batch.clone().zip(buffer.chunks_exact_mut(width)) {
                let divisor = &nodes[(dst[e] as usize * 2 + 1) * width..][..width];
                blocks(width, to, |e, j| e / divisor[j]);
            }
            sink.put_acc(&buffer[..batch.len() * width]);
        }
    }
}

/// `to[j] = f(to[j], j)`, eight at a time, so that rows of eight are one vector.
#[inline(always)]
fn blocks<A: Copy>(width: usize, to: &mut [A], f: impl Fn(A, usize) -> A) {
    let whole = width / 8 * 8;
    for at in (0..whole).step_by(8) {
        let block: [A; 8] = std::array::from_fn(|i| f(to[at + i], at + i));
        to[at..][..8].copy_from_slice(&block);
    }
    for j in whole..width {
        to[j] = f(to[j], j);
    }
}

struct Finish<'a, 's, 'o, T: Elem, const H: usize> {
    plan: &'a SoftmaxPlan,
    y: &'a [T],
    grad: &'a [T],
    sums: &'a [T::Acc],
    run: Range<usize>,
    sink: &'s mut Sink<'o, T>,
}

impl<T: Elem, const H: usize> Vectorised for Finish<'_, '_, '_, T, H> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { plan, y, grad, sums, run, sink } = self;
        let (dst, width) = (plan.relation().dst(), known::<H>(plan));
        let whole = width / 8 * 8;
        for e in run {
            ask(dst, e, sums, width, 0, width.min(32));
            let (y, g) = (&y[e * width..][..width], &grad[e * width..][..width]);
            let sum = &sums[dst[e] as usize * width..][..width];
            for at in (0..whole).step_by(8) {
                let (y, g, s) = (&y[at..][..8], &g[at..][..8], &sum[at..][..8]);
                sink.put_from(8, |i| T::of(y[i].acc() * (g[i].acc() - s[i])));
            }
            sink.put_from(width - whole, |i| T::of(y[whole + i].acc() * (g[whole + i].acc() - sum[whole + i])));
        }
    }
}
