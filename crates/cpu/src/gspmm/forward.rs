//! Forward pass of GSpMM: dispatches to a kernel.
//!
//! Regular layouts use [`gather`](super::gather) and [`argmax`](super::argmax). All other broadcasting uses the general
//! loops of this file, which read tables of offsets.

use super::argmax::{better, bit_words, select, select_bits, select_ids};
use super::gather::{Any, CopyLhs, CopyRhs, Messages, Mul, Op, sum};
use super::layout::{HeadsOf8, HeadsOf16, Layout, One, Same, Table};
use crate::number::Acc;
use crate::number::Elem;
use crate::number::lanes::Lanes;
use crate::parallel::adjacency::Adjacency;
use crate::parallel::runs::{by_edges, run_all};
use crate::simd::instruction_sets::{Baseline, InstructionSets};
use burn_gnn_plan::{BinaryOp, Columns, GspmmPlan, Reduce, Side};

/// The result of a plan. An operand that the operator does not read may be empty.
pub(crate) fn forward<T: Elem>(plan: &GspmmPlan, lhs: &[T], rhs: &[T]) -> Vec<T> {
    run(plan, lhs, rhs, false).0
}

/// The result of max or min, and its argmax for the gradient: edge ids, or bits if [`bit_words`](super::bit_words)
/// returns a number.
pub(crate) fn forward_argmax<T: Elem>(plan: &GspmmPlan, lhs: &[T], rhs: &[T]) -> Out<T> {
    run(plan, lhs, rhs, true)
}

fn run<T: Elem>(plan: &GspmmPlan, lhs: &[T], rhs: &[T], argmax: bool) -> Out<T> {
    let job =
        Job { rows: Adjacency::new(plan.relation().csc()), lhs, rhs, width: plan.width(), argmax };
    // A plan of such a shape has no tables of offsets, and its operands may have any row length.
    if job.width == 0 || plan.relation().num_edges() == 0 {
        let entries = job.rows.num_rows() * job.width;
        return (vec![T::zeroed(); entries], if argmax { vec![-1; entries] } else { Vec::new() });
    }
    if let Some(words) = bit_words(plan).filter(|_| argmax) {
        return select_bits(&job.messages(CopyLhs, Same), plan.reduce() == Reduce::Max, words);
    }
    match plan.op() {
        BinaryOp::CopyLhs => job.regular::<_, _, T::HotLoop>(plan.reduce(), CopyLhs, Same),
        BinaryOp::CopyRhs => job.regular::<_, _, Baseline>(plan.reduce(), CopyRhs, Same),
        op => job.binary(plan, op),
    }
}

/// Values and argmax; the argmax is empty unless it is requested.
pub(crate) type Out<T> = (Vec<T>, Vec<i32>);

struct Job<'a, T> {
    rows: Adjacency<'a>,
    lhs: &'a [T],
    rhs: &'a [T],
    width: usize,
    argmax: bool,
}

impl<T: Elem> Job<'_, T> {
    fn binary(&self, plan: &GspmmPlan, op: BinaryOp) -> Out<T> {
        let (l, r, reduce) = (plan.map(Side::Lhs), plan.map(Side::Rhs), plan.reduce());
        let sums = op == BinaryOp::Mul && !reduce.selects();
        match (&l.columns, &r.columns) {
            (Columns::Same, Columns::Same) if sums => self.sums(reduce, Mul, Same),
            (Columns::Same, Columns::One) if sums => self.sums(reduce, Mul, One),
            (Columns::Same, Columns::Repeat(8)) if sums => self.sums(reduce, Mul, HeadsOf8),
            (Columns::Same, Columns::Repeat(times)) if sums => {
                self.sums(reduce, Mul, HeadsOf16(*times))
            }
            (Columns::Same, Columns::Same) => self.regular::<_, _, Baseline>(reduce, Any(op), Same),
            (Columns::Same, Columns::One) => self.regular::<_, _, Baseline>(reduce, Any(op), One),
            _ => {
                let (lt, rt) = (l.table(plan.out()), r.table(plan.out()));
                let (l, r) =
                    (Table { offsets: &lt, len: l.len }, Table { offsets: &rt, len: r.len });
                match plan.reduce() {
                    Reduce::Sum => (self.sum(op, false, l, r), Vec::new()),
                    Reduce::Mean => (self.sum(op, true, l, r), Vec::new()),
                    Reduce::Max => self.select(op, T::Acc::ONE, l, r),
                    Reduce::Min => self.select(op, -T::Acc::ONE, l, r),
                }
            }
        }
    }

    fn messages<O: Op, R: Layout>(&self, op: O, layout: R) -> Messages<'_, T, O, R> {
        Messages::new(self.rows, self.lhs, self.rhs, op, layout, self.width)
    }

    fn sums<O: Op, R: Layout>(&self, reduce: Reduce, op: O, layout: R) -> Out<T> {
        (sum(&self.messages(op, layout), reduce == Reduce::Mean), Vec::new())
    }

    /// A regular layout; `W` are the instruction sets for which max and min are compiled.
    fn regular<O: Op, R: Layout, W: InstructionSets>(
        &self,
        reduce: Reduce,
        op: O,
        layout: R,
    ) -> Out<T> {
        if !reduce.selects() {
            return self.sums(reduce, op, layout);
        }
        let (messages, max) = (self.messages(op, layout), reduce == Reduce::Max);
        if self.argmax {
            select_ids::<_, _, _, W>(&messages, max)
        } else {
            (select::<_, _, _, W>(&messages, max), Vec::new())
        }
    }

    /// Calls `f` with the column and the message entry of the edge at position `p`, for all columns.
    #[inline(always)]
    fn message(
        &self,
        op: BinaryOp,
        p: usize,
        l: Table<'_>,
        r: Table<'_>,
        mut f: impl FnMut(usize, T::Acc),
    ) {
        let lhs = &self.lhs[self.rows.indices[p] as usize * l.len..][..l.len];
        let rhs = &self.rhs[self.rows.edge_id(p) * r.len..][..r.len];
        for ((&a, &b), j) in l.offsets.iter().zip(r.offsets).zip(0..self.width) {
            let one = |x: T| Lanes::<T::Acc, 1>([x.acc()]);
            f(j, Any(op).apply(one(lhs[a as usize]), one(rhs[b as usize])).0[0]);
        }
    }

    fn sum(&self, op: BinaryOp, mean: bool, l: Table<'_>, r: Table<'_>) -> Vec<T> {
        let width = self.width;
        let mut out = vec![T::zeroed(); self.rows.num_rows() * width];
        run_all(by_edges(self.rows.indptr, width), width, &mut out, &mut [], &|run, part, _| {
            let mut acc = vec![T::Acc::ZERO; width];
            for (v, row) in run.zip(part.chunks_exact_mut(width)) {
                let edges = self.rows.row(v);
                if edges.is_empty() {
                    continue;
                }
                let degree = T::Acc::count(edges.len() as u32);
                acc.fill(T::Acc::ZERO);
                for p in edges {
                    self.message(op, p, l, r, |j, m| acc[j] += m);
                }
                row.iter_mut()
                    .zip(&acc)
                    .for_each(|(o, &a)| *o = T::of(if mean { a / degree } else { a }));
            }
        });
        out
    }

    fn select(&self, op: BinaryOp, sign: T::Acc, l: Table<'_>, r: Table<'_>) -> Out<T> {
        let width = self.width;
        let entries = self.rows.num_rows() * width;
        // Rows without edges keep the value 0 and the argmax "no edge". There is no sentinel among the values.
        let (mut out, mut arg) = (vec![T::zeroed(); entries], vec![-1i32; entries]);
        run_all(
            by_edges(self.rows.indptr, width),
            width,
            &mut out,
            &mut arg,
            &|run, part, args| {
                let mut best = vec![T::Acc::ZERO; width];
                for ((v, row), arg) in
                    run.zip(part.chunks_exact_mut(width)).zip(args.chunks_exact_mut(width))
                {
                    let edges = self.rows.row(v);
                    for (p, first) in
                        edges.clone().zip(std::iter::once(true).chain(std::iter::repeat(false)))
                    {
                        let id = self.rows.edge_id(p) as i32;
                        self.message(op, p, l, r, |j, m| {
                            let m = m * sign;
                            if first || better(m, best[j]) {
                                (best[j], arg[j]) = (m, id);
                            }
                        });
                    }
                    if !edges.is_empty() {
                        row.iter_mut().zip(&best).for_each(|(o, &b)| *o = T::of(b * sign));
                    }
                }
            },
        );
        (out, arg)
    }
}
