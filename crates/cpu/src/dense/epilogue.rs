//! Epilogues: bias, activation and dropout in one pass, and their gradients.

use std::ops::Range;

use super::dropout::Mask;
use crate::math::activation::ScalarActivation;
use crate::number::{Acc, Elem};
use crate::parallel::collect::{collect_in_place, collect_rows_and_edges, collect_rows2};
use crate::parallel::output_buffer::Sink;
use crate::parallel::output_rows::OutputRows;
use crate::parallel::runs::{evenly, split_mut};
use crate::parallel::scatter::scatter;
use crate::parallel::scatter::{EdgeRows, Scattered};
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_plan::Activation;
use burn_gnn_plan::EpiloguePlan;

/// Rows per partial sum of the gradient of the bias. It is fixed, so that bits do not depend on the number of threads.
const BLOCK: usize = 256;

/// Runs `$body` with `$f` bound to the activation in one arm per variant, so that loops do not branch on it.
macro_rules! by_activation {
    ($activation:expr, $f:ident => $body:expr) => {
        match $activation {
            Activation::None => {
                let $f = Activation::None;
                $body
            }
            Activation::Relu => {
                let $f = Activation::Relu;
                $body
            }
            Activation::LeakyRelu(slope) => {
                let $f = Activation::LeakyRelu(slope);
                $body
            }
            Activation::Elu(alpha) => {
                let $f = Activation::Elu(alpha);
                $body
            }
        }
    };
}

/// Estimated cost of a row, in loads.
fn cost(plan: &EpiloguePlan) -> usize {
    let [_, columns] = plan.shape();
    columns * if plan.dropout().is_some() { 6 } else { 2 }
}

/// The input and output rows of a run.
enum Rows<'a, 's, T> {
    /// Reads one tensor and writes another.
    Fresh(&'a [T], &'a mut Sink<'s, T>),
    /// Overwrites the rows of the run; the tensor has no other references.
    Own(&'a mut [T], usize),
}

impl<T: Elem> Rows<'_, '_, T> {
    /// Row `r` before it is written.
    #[inline(always)]
    fn get(&self, r: usize, columns: usize) -> &[T] {
        match self {
            Self::Fresh(from, _) => &from[r * columns..][..columns],
            Self::Own(rows, first) => &rows[(r - first) * columns..][..columns],
        }
    }
    /// Writes row `r`; rows come in ascending order.
    #[inline(always)]
    fn put(&mut self, r: usize, row: &[T::Acc]) {
        match self {
            Self::Fresh(_, to) => to.put_acc(row),
            Self::Own(rows, first) => {
                for (to, &x) in rows[(r - *first) * row.len()..].iter_mut().zip(row) {
                    *to = T::of(x);
                }
            }
        }
    }
}

/// Runs of rows for the forward pass.
fn runs(plan: &EpiloguePlan) -> Vec<Range<usize>> {
    evenly(plan.shape()[0], cost(plan))
}

fn widened<T: Elem>(bias: Option<&[T]>, columns: usize) -> Vec<T::Acc> {
    bias.map_or_else(|| vec![T::Acc::ZERO; columns], |b| b.iter().map(|b| b.acc()).collect())
}

/// Number of 32-bit words that hold a bit per column.
pub fn words(columns: usize) -> usize {
    columns.div_ceil(32)
}

/// `dropout(activation(x + bias))`. If `open` is set, also a bit for every entry that ReLU and dropout pass, in [`words`]
/// words per row.
pub(crate) fn forward<T: Elem>(
    x: &[T],
    bias: Option<&[T]>,
    plan: &EpiloguePlan,
    open: bool,
) -> (Vec<T>, Vec<i32>) {
    let [_, columns] = plan.shape();
    let bias = &widened(bias, columns)[..];
    let words = if open { words(columns) } else { 0 };
    collect_rows2(&runs(plan), [columns, words], &|run, out, bits| {
        vectorised(Forward {
            rows: Rows::Fresh(x, out),
            bias,
            plan,
            run,
            open: open.then_some(bits),
        });
    })
}

/// [`forward`], which overwrites `x`; returns the bits.
pub(crate) fn forward_own<T: Elem>(
    x: &mut [T],
    bias: Option<&[T]>,
    plan: &EpiloguePlan,
    open: bool,
) -> Vec<i32> {
    let [_, columns] = plan.shape();
    let bias = &widened(bias, columns)[..];
    let words = if open { words(columns) } else { 0 };
    collect_in_place(&runs(plan), x, columns, words, &|run, rows, bits| {
        vectorised(Forward {
            rows: Rows::Own(rows, run.start),
            bias,
            plan,
            run,
            open: open.then_some(bits),
        });
    })
}

/// Writes the bits of the next row, whose result is `row`. Dropped entries are 0, so their bits are 0.
#[inline(always)]
fn mark<A: Acc>(open: &mut Sink<'_, i32>, row: &[A]) {
    let (whole, rest) = row.as_chunks::<32>();
    for chunk in whole {
        open.fill(1, bits(chunk) as i32);
    }
    if !rest.is_empty() {
        let mut last = [A::ZERO; 32];
        last[..rest.len()].copy_from_slice(rest);
        open.fill(1, bits(&last) as i32);
    }
}

/// Bit `i` is set unless entry `i` is 0 or less; NaN passes.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // By lanes.
fn bits<A: Acc>(chunk: &[A; 32]) -> u32 {
    let mut lanes = [0u32; 32];
    for i in 0..32 {
        lanes[i] = if chunk[i] <= A::ZERO { 0 } else { 1 << i };
    }
    lanes.iter().fold(0, |all, lane| all | lane)
}

struct Forward<'a, 's, 'o, T: Elem> {
    rows: Rows<'a, 's, T>,
    bias: &'a [T::Acc],
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    open: Option<&'a mut Sink<'o, i32>>,
}

impl<T: Elem> Vectorised for Forward<'_, '_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rows, bias, plan, run, mut open } = self;
        let [_, columns] = plan.shape();
        let bias = &bias[..columns];
        let mut row = vec![T::Acc::ZERO; columns];
        let Some(dropout) = plan.dropout() else {
            by_activation!(plan.activation(), f => for r in run {
                for ((y, x), &b) in row.iter_mut().zip(rows.get(r, columns)).zip(bias) {
                    *y = f.value(x.acc() + b);
                }
                if let Some(open) = &mut open {
                    mark(open, &row);
                }
                rows.put(r, &row);
            });
            return;
        };
        let scale = T::Acc::of_f64(dropout.scale());
        let mut mask = Mask::new(dropout, columns);
        for from in run.clone().step_by(mask.tile()) {
            let tile = from..(from + mask.tile()).min(run.end);
            mask.draw(tile.clone());
            by_activation!(plan.activation(), f => for r in tile {
                let words = mask.row(r, columns);
                for (((y, x), &b), &w) in row.iter_mut().zip(rows.get(r, columns)).zip(bias).zip(words) {
                    let kept = f.value(x.acc() + b) * scale;
                    *y = if mask.keeps(w) { kept } else { T::Acc::ZERO };
                }
                if let Some(open) = &mut open {
                    mark(open, &row);
                }
                rows.put(r, &row);
            });
        }
    }
}

/// The saved data that the gradient reads.
#[derive(Clone, Copy)]
pub enum Read<'a, T> {
    /// Nothing: there is no activation.
    Nothing,
    /// The result.
    Output(&'a [T]),
    /// The bits of [`Kernels::epilogue`](crate::Kernels::epilogue).
    Open(&'a [i32]),
}

/// The gradients of `x` and, if `bias` is set, of the bias.
pub(crate) fn gradient<T: Elem>(
    grad: &[T],
    kept: Read<'_, T>,
    plan: &EpiloguePlan,
    bias: bool,
) -> (Vec<T>, Vec<T>) {
    let [_, columns] = plan.shape();
    let (runs, sums) = (block_runs(plan), block_sums(plan, bias));
    let (dx, _, sums) =
        collect_rows_and_edges::<T, (), T::Acc>(&runs, [columns, 0], sums, &|run, dx, _, sums| {
            sums.whole();
            vectorised(Backward {
                rows: Rows::Fresh(grad, dx),
                kept,
                plan,
                run,
                sums: bias.then_some(sums),
            });
        });
    (dx, total(plan, bias, &sums))
}

/// [`gradient`], which overwrites `grad`; returns the gradient of the bias.
pub(crate) fn gradient_own<T: Elem>(
    grad: &mut [T],
    kept: Read<'_, T>,
    plan: &EpiloguePlan,
    bias: bool,
) -> Vec<T> {
    let [_, columns] = plan.shape();
    let runs = block_runs(plan);
    let own = split_mut(grad, &runs, columns);
    let sums = scatter(
        block_sums(plan, bias),
        runs.into_iter().zip(own).collect(),
        &|(run, rows): (Range<usize>, &mut [T]), sums| {
            sums.whole();
            vectorised(Backward {
                rows: Rows::Own(rows, run.start),
                kept,
                plan,
                run,
                sums: bias.then_some(sums),
            });
        },
    );
    total(plan, bias, &sums)
}

/// Runs of rows that consist of whole blocks.
fn block_runs(plan: &EpiloguePlan) -> Vec<Range<usize>> {
    let rows = plan.shape()[0];
    let blocks = evenly(rows.div_ceil(BLOCK), BLOCK * cost(plan));
    blocks.into_iter().map(|b| b.start * BLOCK..(b.end * BLOCK).min(rows)).collect()
}

/// The output of column sums, with one row per block.
fn block_sums(plan: &EpiloguePlan, bias: bool) -> Scattered<'static> {
    let [rows, columns] = plan.shape();
    let positions = block_runs(plan)
        .into_iter()
        .map(|run| run.start / BLOCK..run.end.div_ceil(BLOCK))
        .collect();
    Scattered {
        rows: OutputRows::in_order(rows.div_ceil(BLOCK)),
        positions,
        width: if bias { columns } else { 0 },
        zeroed: false,
    }
}

/// Adds the column sums of all blocks, in order.
fn total<T: Elem>(plan: &EpiloguePlan, bias: bool, sums: &[T::Acc]) -> Vec<T> {
    let [_, columns] = plan.shape();
    let mut total = vec![T::Acc::ZERO; if bias { columns } else { 0 }];
    for block in sums.chunks_exact(columns.max(1)) {
        for (t, &s) in total.iter_mut().zip(block) {
            *t += s;
        }
    }
    total.into_iter().map(T::of).collect()
}

struct Backward<'a, 's, 'o, T: Elem> {
    rows: Rows<'a, 's, T>,
    kept: Read<'a, T>,
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    sums: Option<&'a mut EdgeRows<'o, T::Acc>>,
}

impl<T: Elem> Vectorised for Backward<'_, '_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rows, kept, plan, run, mut sums } = self;
        let [_, columns] = plan.shape();
        let scale = T::Acc::of_f64(plan.dropout().map_or(1.0, |d| d.scale()));
        let unscale = T::Acc::ONE / scale;
        // The bits include dropout, so the mask is not drawn again.
        let mut mask = plan
            .dropout()
            .filter(|_| !matches!(kept, Read::Open(_)))
            .map(|d| Mask::new(d, columns));
        let mut row = vec![T::Acc::ZERO; columns];
        let mut sum = vec![T::Acc::ZERO; columns];
        for first in run.clone().step_by(BLOCK) {
            let block = first..(first + BLOCK).min(run.end);
            sum.fill(T::Acc::ZERO);
            let tile = mask.as_ref().map_or(BLOCK, Mask::tile);
            for from in block.clone().step_by(tile) {
                let tile = from..(from + tile).min(block.end);
                if let Some(mask) = &mut mask {
                    mask.draw(tile.clone());
                }
                for r in tile {
                    let g = rows.get(r, columns);
                    match kept {
                        Read::Open(open) => {
                            let words = words(columns);
                            through(&mut row, g, &open[r * words..][..words], scale);
                        }
                        Read::Nothing => {
                            chain(Activation::None, &mut row, g, g, &mask, r, [scale, unscale])
                        }
                        Read::Output(out) => {
                            let y = &out[r * columns..][..columns];
                            by_activation!(plan.activation(), f => chain(f, &mut row, g, y, &mask, r, [scale, unscale]));
                        }
                    }
                    rows.put(r, &row);
                    if sums.is_some() {
                        for (s, &d) in sum.iter_mut().zip(&row) {
                            *s += d;
                        }
                    }
                }
            }
            if let Some(sums) = &mut sums {
                sums.put(columns, |to| to.put(&sum));
            }
        }
    }
}

/// Selects the gradient if the bit of an entry is set, otherwise 0, even if the gradient is infinite.
#[inline(always)]
fn through<T: Elem>(row: &mut [T::Acc], grad: &[T], open: &[i32], scale: T::Acc) {
    for ((d, g), &word) in row.chunks_mut(32).zip(grad.chunks(32)).zip(open) {
        for (i, (d, g)) in d.iter_mut().zip(g).enumerate() {
            *d = if word & (1 << i) != 0 { g.acc() * scale } else { T::Acc::ZERO };
        }
    }
}

/// The gradient through dropout and an activation whose result is `y`.
#[inline(always)]
fn chain<T: Elem>(
    f: Activation,
    row: &mut [T::Acc],
    grad: &[T],
    y: &[T],
    mask: &Option<Mask<'_>>,
    r: usize,
    [scale, unscale]: [T::Acc; 2],
) {
    let Some(mask) = mask else {
        for ((d, g), y) in row.iter_mut().zip(grad).zip(y) {
            *d = f.chain(y.acc(), g.acc());
        }
        return;
    };
    let words = mask.row(r, row.len());
    for (((d, g), y), &w) in row.iter_mut().zip(grad).zip(y).zip(words) {
        let through = f.chain(y.acc() * unscale, g.acc() * scale);
        *d = if mask.keeps(w) { through } else { T::Acc::ZERO };
    }
}
