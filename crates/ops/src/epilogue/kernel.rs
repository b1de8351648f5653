//! Epilogues on slices.

use std::ops::Range;

use super::plan::EpiloguePlan;
use crate::Activation;
use crate::kernel::{Acc, Elem, Mask, Scatter, Sink, Vectorised, collect_rows, evenly, run_all, scatter_rows, vectorised};

/// Rows whose columns are summed together for the bias, at fixed places: the sums do not depend on threads.
const BLOCK: usize = 256;

/// Runs `$body` with `$f` the activation as a constant of each arm, so that loops have no choice inside.
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

/// About what an entry costs against a load.
fn cost(plan: &EpiloguePlan) -> usize {
    let [_, columns] = plan.shape();
    columns * if plan.dropout().is_some() { 6 } else { 2 }
}

/// Where the rows of a run come from and go to.
enum Rows<'a, 's, T> {
    /// From one tensor into the memory of another.
    Fresh(&'a [T], &'a mut Sink<'s, T>),
    /// The rows of the run, overwritten: nobody else holds the tensor.
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

/// `dropout(activation(x + bias))`.
pub(crate) fn forward<T: Elem>(x: &[T], bias: Option<&[T]>, plan: &EpiloguePlan) -> Vec<T> {
    let [_, columns] = plan.shape();
    let bias = &widened(bias, columns)[..];
    collect_rows(&runs(plan), columns, &|run, out| vectorised(Forward { rows: Rows::Fresh(x, out), bias, plan, run }))
}

/// The same, over `x`.
pub(crate) fn forward_own<T: Elem>(x: &mut [T], bias: Option<&[T]>, plan: &EpiloguePlan) {
    let [_, columns] = plan.shape();
    let bias = &widened(bias, columns)[..];
    run_all(runs(plan), columns, x, &mut [], &|run, rows, _| {
        vectorised(Forward { rows: Rows::Own(rows, run.start), bias, plan, run });
    });
}

struct Forward<'a, 's, T: Elem> {
    rows: Rows<'a, 's, T>,
    bias: &'a [T::Acc],
    plan: &'a EpiloguePlan,
    run: Range<usize>,
}

impl<T: Elem> Vectorised for Forward<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rows, bias, plan, run } = self;
        let [_, columns] = plan.shape();
        let bias = &bias[..columns];
        let mut row = vec![T::Acc::ZERO; columns];
        let Some(dropout) = plan.dropout() else {
            by_activation!(plan.activation(), f => for r in run {
                for ((y, x), &b) in row.iter_mut().zip(rows.get(r, columns)).zip(bias) {
                    *y = f.value(x.acc() + b);
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
                rows.put(r, &row);
            });
        }
    }
}

/// Gradients of `x` and, if asked for, of the bias. `out` is empty where no activation reads it.
pub(crate) fn gradient<T: Elem>(grad: &[T], out: &[T], plan: &EpiloguePlan, bias: bool) -> (Vec<T>, Vec<T>) {
    let [_, columns] = plan.shape();
    let mut dx = Vec::new();
    let db = with_sums(plan, bias, |runs, sums| {
        dx = collect_rows(&runs, columns, &|run, dx| vectorised(Backward { rows: Rows::Fresh(grad, dx), out, plan, run, sums }));
    });
    (dx, db)
}

/// The same, over `grad`.
pub(crate) fn gradient_own<T: Elem>(grad: &mut [T], out: &[T], plan: &EpiloguePlan, bias: bool) -> Vec<T> {
    let [_, columns] = plan.shape();
    with_sums(plan, bias, |runs, sums| {
        run_all(runs, columns, grad, &mut [], &|run, rows, _| {
            vectorised(Backward { rows: Rows::Own(rows, run.start), out, plan, run, sums });
        });
    })
}

/// Runs of whole blocks of rows, and the column sums that they leave.
fn with_sums<T: Elem>(plan: &EpiloguePlan, bias: bool, work: impl FnOnce(Vec<Range<usize>>, Option<&Scatter<'_, T::Acc>>)) -> Vec<T> {
    let [rows, columns] = plan.shape();
    let blocks = rows.div_ceil(BLOCK);
    let runs = evenly(blocks, BLOCK * cost(plan)).into_iter().map(|b| b.start * BLOCK..(b.end * BLOCK).min(rows)).collect();
    let sums = scatter_rows(if bias { blocks } else { 0 }, columns, |sums| work(runs, bias.then_some(sums)));
    let mut total = vec![T::Acc::ZERO; if bias { columns } else { 0 }];
    for block in sums.chunks_exact(columns.max(1)) {
        for (t, &s) in total.iter_mut().zip(block) {
            *t += s;
        }
    }
    total.into_iter().map(T::of).collect()
}

struct Backward<'a, 's, T: Elem> {
    rows: Rows<'a, 's, T>,
    out: &'a [T],
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    sums: Option<&'a Scatter<'a, T::Acc>>,
}

impl<T: Elem> Vectorised for Backward<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rows, out, plan, run, sums } = self;
        let [_, columns] = plan.shape();
        let scale = T::Acc::of_f64(plan.dropout().map_or(1.0, |d| d.scale()));
        let unscale = T::Acc::ONE / scale;
        let mut mask = plan.dropout().map(|d| Mask::new(d, columns));
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
                by_activation!(plan.activation(), f => for r in tile {
                    let g = rows.get(r, columns);
                    // Not read without an activation.
                    let y = if f == Activation::None { g } else { &out[r * columns..][..columns] };
                    match &mask {
                        None => {
                            for ((d, g), y) in row.iter_mut().zip(g).zip(y) {
                                *d = f.chain(y.acc(), g.acc());
                            }
                        }
                        Some(mask) => {
                            let words = mask.row(r, columns);
                            for (((d, g), y), &w) in row.iter_mut().zip(g).zip(y).zip(words) {
                                let through = f.chain(y.acc() * unscale, g.acc() * scale);
                                *d = if mask.keeps(w) { through } else { T::Acc::ZERO };
                            }
                        }
                    }
                    rows.put(r, &row);
                    if sums.is_some() {
                        for (s, &d) in sum.iter_mut().zip(&row) {
                            *s += d;
                        }
                    }
                });
            }
            if let Some(sums) = sums {
                // SAFETY: runs are disjoint and start at whole blocks, so no other call writes this block's row.
                unsafe { sums.row_mut(first / BLOCK) }.copy_from_slice(&sum);
            }
        }
    }
}
