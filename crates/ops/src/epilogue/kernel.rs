//! Epilogues on slices.

use std::ops::Range;

use super::plan::EpiloguePlan;
use crate::Activation;
use crate::kernel::{Acc, Elem, Exp, Mask, Scatter, Sink, Vectorised, collect_rows, evenly, scatter_rows, vectorised};

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

/// `dropout(activation(x + bias))`.
pub(crate) fn forward<T: Elem>(x: &[T], bias: Option<&[T]>, plan: &EpiloguePlan) -> Vec<T>
where
    T::Acc: Exp,
{
    let [rows, columns] = plan.shape();
    let bias: Vec<T::Acc> = bias.map_or_else(|| vec![T::Acc::ZERO; columns], |b| b.iter().map(|b| b.acc()).collect());
    let bias = &bias[..];
    collect_rows(&evenly(rows, cost(plan)), columns, &|run, out| vectorised(Forward { x, bias, plan, run, out }))
}

struct Forward<'a, 's, T: Elem> {
    x: &'a [T],
    bias: &'a [T::Acc],
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    out: &'a mut Sink<'s, T>,
}

impl<T: Elem> Vectorised for Forward<'_, '_, T>
where
    T::Acc: Exp,
{
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, bias, plan, run, out } = self;
        let [_, columns] = plan.shape();
        let bias = &bias[..columns];
        let Some(dropout) = plan.dropout() else {
            by_activation!(plan.activation(), f => for r in run {
                let x = &x[r * columns..][..columns];
                out.put_from(columns, |j| T::of(f.value(x[j].acc() + bias[j])));
            });
            return;
        };
        let scale = T::Acc::of_f64(dropout.scale());
        let mut mask = Mask::new(dropout, columns);
        for from in run.clone().step_by(mask.tile()) {
            let rows = from..(from + mask.tile()).min(run.end);
            mask.draw(rows.clone());
            by_activation!(plan.activation(), f => for r in rows {
                let (x, words) = (&x[r * columns..][..columns], mask.row(r, columns));
                out.put_from(columns, |j| {
                    let y = f.value(x[j].acc() + bias[j]) * scale;
                    T::of(if mask.keeps(words[j]) { y } else { T::Acc::ZERO })
                });
            });
        }
    }
}

/// Gradients of `x` and, if asked for, of the bias. `out` is empty where no activation reads it.
pub(crate) fn gradient<T: Elem>(grad: &[T], out: &[T], plan: &EpiloguePlan, bias: bool) -> (Vec<T>, Vec<T>)
where
    T::Acc: Exp + bytemuck::Pod,
{
    let [rows, columns] = plan.shape();
    let blocks = rows.div_ceil(BLOCK);
    let runs: Vec<_> = evenly(blocks, BLOCK * cost(plan)).into_iter().map(|b| b.start * BLOCK..(b.end * BLOCK).min(rows)).collect();
    let mut dx = Vec::new();
    let sums = scatter_rows(if bias { blocks } else { 0 }, columns, |sums| {
        dx = collect_rows(&runs, columns, &|run, dx| vectorised(Backward { grad, out, plan, run, dx, sums: bias.then_some(sums) }));
    });
    let mut total = vec![T::Acc::ZERO; if bias { columns } else { 0 }];
    for block in sums.chunks_exact(columns.max(1)) {
        for (t, &s) in total.iter_mut().zip(block) {
            *t += s;
        }
    }
    (dx, total.into_iter().map(T::of).collect())
}

struct Backward<'a, 's, T: Elem> {
    grad: &'a [T],
    out: &'a [T],
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    dx: &'a mut Sink<'s, T>,
    sums: Option<&'a Scatter<'a, T::Acc>>,
}

impl<T: Elem> Vectorised for Backward<'_, '_, T>
where
    T::Acc: Exp + bytemuck::Pod,
{
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { grad, out, plan, run, dx, sums } = self;
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
                let rows = from..(from + tile).min(block.end);
                if let Some(mask) = &mut mask {
                    mask.draw(rows.clone());
                }
                by_activation!(plan.activation(), f => for r in rows {
                    let g = &grad[r * columns..][..columns];
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
                    dx.put_acc(&row);
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
