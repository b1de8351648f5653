//! Epilogues on slices.

use std::ops::Range;

use super::plan::EpiloguePlan;
use crate::Activation;
use crate::kernel::{
    Acc, Elem, Mask, Scatter, Sink, Vectorised, collect_rows, evenly, run_all, scatter_every_row, scatter_rows, vectorised,
};

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

/// Words that hold a bit for each of so many columns.
pub(crate) fn words(columns: usize) -> usize {
    columns.div_ceil(32)
}

/// `dropout(activation(x + bias))` and, if `open`, a bit for every entry that a relu and dropout let through,
/// [`words`] for each row.
pub(crate) fn forward<T: Elem>(x: &[T], bias: Option<&[T]>, plan: &EpiloguePlan, open: bool) -> (Vec<T>, Vec<i32>) {
    let [_, columns] = plan.shape();
    let bias = &widened(bias, columns)[..];
    let mut out = Vec::new();
    let open = with_open(plan, open, |open| {
        out = collect_rows(&runs(plan), columns, &|run, out| vectorised(Forward { rows: Rows::Fresh(x, out), bias, plan, run, open }));
    });
    (out, open)
}

/// The same, over `x`.
pub(crate) fn forward_own<T: Elem>(x: &mut [T], bias: Option<&[T]>, plan: &EpiloguePlan, open: bool) -> Vec<i32> {
    let [_, columns] = plan.shape();
    let bias = &widened(bias, columns)[..];
    with_open(plan, open, |open| {
        run_all(runs(plan), columns, x, &mut [], &|run, rows, _| {
            vectorised(Forward { rows: Rows::Own(rows, run.start), bias, plan, run, open });
        });
    })
}

/// The bits that `work` leaves, none unless `open`.
fn with_open(plan: &EpiloguePlan, open: bool, work: impl FnOnce(Option<&Scatter<'_, i32>>)) -> Vec<i32> {
    let [rows, columns] = plan.shape();
    if !open {
        work(None);
        return Vec::new();
    }
    // SAFETY: runs cover all rows, and `mark` writes every word of a row, of which there are `words(columns)`.
    unsafe { scatter_every_row(rows, words(columns), |open| work(Some(open))) }
}

/// Writes the bits of row `r`, whose result is `row`. Entries that were dropped are 0 and so count as closed.
#[inline(always)]
fn mark<A: Acc>(open: &Scatter<'_, i32>, r: usize, row: &[A]) {
    // SAFETY: runs are disjoint, so no other call writes this row.
    let to = unsafe { open.unwritten(r) };
    let (whole, rest) = row.as_chunks::<32>();
    for (to, chunk) in to.iter_mut().zip(whole) {
        to.write(bits(chunk) as i32);
    }
    if !rest.is_empty() {
        let mut last = [A::ZERO; 32];
        last[..rest.len()].copy_from_slice(rest);
        to[whole.len()].write(bits(&last) as i32);
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

struct Forward<'a, 's, T: Elem> {
    rows: Rows<'a, 's, T>,
    bias: &'a [T::Acc],
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    open: Option<&'a Scatter<'a, i32>>,
}

impl<T: Elem> Vectorised for Forward<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rows, bias, plan, run, open } = self;
        let [_, columns] = plan.shape();
        let bias = &bias[..columns];
        let mut row = vec![T::Acc::ZERO; columns];
        let Some(dropout) = plan.dropout() else {
            by_activation!(plan.activation(), f => for r in run {
                for ((y, x), &b) in row.iter_mut().zip(rows.get(r, columns)).zip(bias) {
                    *y = f.value(x.acc() + b);
                }
                if let Some(open) = open {
                    mark(open, r, &row);
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
                if let Some(open) = open {
                    mark(open, r, &row);
                }
                rows.put(r, &row);
            });
        }
    }
}

/// What the gradient reads beside its own.
#[derive(Clone, Copy)]
pub(crate) enum Read<'a, T> {
    /// Nothing: no activation.
    Nothing,
    /// The result.
    Output(&'a [T]),
    /// The bits of [`forward`].
    Open(&'a [i32]),
}

/// Gradients of `x` and, if asked for, of the bias.
pub(crate) fn gradient<T: Elem>(grad: &[T], kept: Read<'_, T>, plan: &EpiloguePlan, bias: bool) -> (Vec<T>, Vec<T>) {
    let [_, columns] = plan.shape();
    let mut dx = Vec::new();
    let db = with_sums(plan, bias, |runs, sums| {
        dx = collect_rows(&runs, columns, &|run, dx| vectorised(Backward { rows: Rows::Fresh(grad, dx), kept, plan, run, sums }));
    });
    (dx, db)
}

/// The same, over `grad`.
pub(crate) fn gradient_own<T: Elem>(grad: &mut [T], kept: Read<'_, T>, plan: &EpiloguePlan, bias: bool) -> Vec<T> {
    let [_, columns] = plan.shape();
    with_sums(plan, bias, |runs, sums| {
        run_all(runs, columns, grad, &mut [], &|run, rows, _| {
            vectorised(Backward { rows: Rows::Own(rows, run.start), kept, plan, run, sums });
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
    kept: Read<'a, T>,
    plan: &'a EpiloguePlan,
    run: Range<usize>,
    sums: Option<&'a Scatter<'a, T::Acc>>,
}

impl<T: Elem> Vectorised for Backward<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { mut rows, kept, plan, run, sums } = self;
        let [_, columns] = plan.shape();
        let scale = T::Acc::of_f64(plan.dropout().map_or(1.0, |d| d.scale()));
        let unscale = T::Acc::ONE / scale;
        // Bits know of dropout already.
        let mut mask = plan.dropout().filter(|_| !matches!(kept, Read::Open(_))).map(|d| Mask::new(d, columns));
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
                        Read::Nothing => chain(Activation::None, &mut row, g, g, &mask, r, [scale, unscale]),
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
            if let Some(sums) = sums {
                // SAFETY: runs are disjoint and start at whole blocks, so no other call writes this block's row.
                unsafe { sums.row_mut(first / BLOCK) }.copy_from_slice(&sum);
            }
        }
    }
}

/// The gradient where a bit is set, 0 elsewhere, also where the gradient is infinite.
#[inline(always)]
fn through<T: Elem>(row: &mut [T::Acc], grad: &[T], open: &[i32], scale: T::Acc) {
    for ((d, g), &word) in row.chunks_mut(32).zip(grad.chunks(32)).zip(open) {
        for (i, (d, g)) in d.iter_mut().zip(g).enumerate() {
            *d = if word & (1 << i) != 0 { g.acc() * scale } else { T::Acc::ZERO };
        }
    }
}

/// The gradient through dropout and an activation, whose result `y` is.
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
