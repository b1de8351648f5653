//! `out[v] = reduce over in-edges (u, v, e) of op(lhs[u], rhs[e])`.
//!
//! ```text
//! parallel for runs of destinations with equal edges:
//!   for v in run:
//!     acc = 0
//!     for (u, e) in row v of CSC, four at a time:
//!       acc[j] += op(lhs[u, j], rhs[e, j])  for all columns j
//!     out[v] = acc  (/ degree for mean)
//! ```
//! Four edges at a time keep four rows in flight, which hides the latency of the gather, and touch
//! `acc` once; the order of the additions is that of one edge at a time. `acc` is one row, so it stays
//! in the first-level cache. Columns are counted by `zip(0..n)`: where overflow is checked, as in the
//! development build, the counter of `enumerate` is too, and the loop would not vectorise.

use burn_gnn_graph::Compressed;

use super::elem::Acc;
use super::split::{by_edges, run_all};
use super::{Cols, Elem, One, Same, Table, is};
use crate::gspmm::{BinaryOp, Columns, GspmmPlan, Reduce, Side};

/// A message operator as a type.
pub(crate) trait Op: Sync {
    const LHS: bool = true;
    const RHS: bool = true;
    fn apply<A: Acc>(l: A, r: A) -> A;
}

macro_rules! ops {
    ($($name:ident, $lhs:literal, $rhs:literal, |$l:ident, $r:ident| $body:expr;)*) => {$(
        pub(crate) struct $name;
        impl Op for $name {
            const LHS: bool = $lhs;
            const RHS: bool = $rhs;
            #[inline(always)]
            fn apply<A: Acc>($l: A, $r: A) -> A {
                $body
            }
        }
    )*};
}

ops! {
    Add, true, true, |l, r| l + r;
    Sub, true, true, |l, r| l - r;
    Mul, true, true, |l, r| l * r;
    Div, true, true, |l, r| l / r;
    CopyLhs, true, false, |l, _r| l;
    CopyRhs, false, true, |_l, r| r;
}

/// Values, and winning edge ids for max and min. An operand that the operator does not read may be empty.
pub(crate) fn forward<T: Elem>(plan: &GspmmPlan, lhs: &[T], rhs: &[T]) -> (Vec<T>, Option<Vec<i32>>) {
    let job = Job { rows: plan.relation().csc(), lhs, rhs, width: plan.width() };
    // Such a plan has no offsets, and rows may be of any length.
    if job.width == 0 || plan.relation().num_edges() == 0 {
        let entries = job.rows.num_rows() * job.width;
        return (vec![T::zeroed(); entries], plan.reduce().selects().then(|| vec![-1; entries]));
    }
    match plan.op() {
        BinaryOp::CopyLhs => job.reduce::<CopyLhs, _, _>(plan.reduce(), Same, Same),
        BinaryOp::CopyRhs => job.reduce::<CopyRhs, _, _>(plan.reduce(), Same, Same),
        BinaryOp::Add => job.columns::<Add>(plan),
        BinaryOp::Sub => job.columns::<Sub>(plan),
        BinaryOp::Mul => job.columns::<Mul>(plan),
        BinaryOp::Div => job.columns::<Div>(plan),
    }
}

/// `out[r] = Σ x[indices[p]]` over the positions of row `r`.
pub(crate) fn gather_sum<T: Elem>(rows: &Compressed, x: &[T], width: usize) -> Vec<T> {
    Job { rows, lhs: x, rhs: &[], width }.sum::<CopyLhs, _, _>(false, Same, Same)
}

struct Job<'a, T> {
    rows: &'a Compressed,
    lhs: &'a [T],
    rhs: &'a [T],
    width: usize,
}

impl<T: Elem> Job<'_, T> {
    /// Two layouts have loops of their own; all others share the table of offsets.
    fn columns<O: Op>(&self, plan: &GspmmPlan) -> (Vec<T>, Option<Vec<i32>>) {
        let (l, r) = (plan.map(Side::Lhs), plan.map(Side::Rhs));
        let kinds = (&l.columns, &r.columns);
        if is(kinds, (&Columns::Same, &Columns::Same)) {
            self.reduce::<O, _, _>(plan.reduce(), Same, Same)
        } else if is(kinds, (&Columns::Same, &Columns::One)) {
            self.reduce::<O, _, _>(plan.reduce(), Same, One)
        } else {
            let (lt, rt) = (l.table(plan.out()), r.table(plan.out()));
            self.reduce::<O, _, _>(plan.reduce(), Table { offsets: &lt, len: l.len }, Table { offsets: &rt, len: r.len })
        }
    }

    fn reduce<O: Op, L: Cols, R: Cols>(&self, reduce: Reduce, l: L, r: R) -> (Vec<T>, Option<Vec<i32>>) {
        match reduce {
            Reduce::Sum => (self.sum::<O, L, R>(false, l, r), None),
            Reduce::Mean => (self.sum::<O, L, R>(true, l, r), None),
            Reduce::Max => self.select::<O, L, R, true>(l, r),
            Reduce::Min => self.select::<O, L, R, false>(l, r),
        }
    }

    /// Operand rows of the edge at position `p`.
    #[inline(always)]
    fn edge<O: Op, L: Cols, R: Cols>(&self, p: usize, n: usize, l: L, r: R) -> (L::Row<'_, T>, R::Row<'_, T>) {
        let lhs = if O::LHS { l.row(self.lhs, self.rows.indices()[p] as usize, n) } else { L::nothing() };
        let rhs = if O::RHS { r.row(self.rhs, self.rows.edge_id(p) as usize, n) } else { R::nothing() };
        (lhs, rhs)
    }

    fn sum<O: Op, L: Cols, R: Cols>(&self, mean: bool, l: L, r: R) -> Vec<T> {
        let width = self.width;
        let mut out = vec![T::zeroed(); self.rows.num_rows() * width];
        if width == 0 {
            return out;
        }
        let runs = by_edges(self.rows.indptr(), width);
        run_all(runs, width, &mut out, &mut [], &|run, part, _| {
            let mut acc = vec![T::Acc::ZERO; width];
            for (v, row) in run.zip(part.chunks_exact_mut(width)) {
                let edges = self.rows.row(v);
                if edges.is_empty() {
                    continue;
                }
                let degree = T::Acc::count(edges.len() as u32);
                acc.fill(T::Acc::ZERO);
                let mut p = edges.start;
                while p + 4 <= edges.end {
                    self.add::<O, L, R, 4>(&mut acc, p, l, r);
                    p += 4;
                }
                while p < edges.end {
                    self.add::<O, L, R, 1>(&mut acc, p, l, r);
                    p += 1;
                }
                if mean {
                    acc.iter_mut().for_each(|a| *a = *a / degree);
                }
                row.iter_mut().zip(&acc).for_each(|(o, &a)| *o = T::of(a));
            }
        });
        out
    }

    /// Adds the messages of the edges at `p..p + K`, in that order.
    #[inline(always)]
    fn add<O: Op, L: Cols, R: Cols, const K: usize>(&self, acc: &mut [T::Acc], p: usize, l: L, r: R) {
        let n = acc.len();
        let edges: [_; K] = std::array::from_fn(|k| self.edge::<O, L, R>(p + k, n, l, r));
        for (a, j) in acc.iter_mut().zip(0..n) {
            let mut sum = *a;
            for (lhs, rhs) in edges {
                sum += message::<T, O, L, R>(lhs, rhs, j, l, r);
            }
            *a = sum;
        }
    }

    fn select<O: Op, L: Cols, R: Cols, const MAX: bool>(&self, l: L, r: R) -> (Vec<T>, Option<Vec<i32>>) {
        let width = self.width;
        let entries = self.rows.num_rows() * width;
        // Rows without edges keep 0 and "no edge"; no value is ever taken for a marker.
        let (mut out, mut arg) = (vec![T::zeroed(); entries], vec![-1i32; entries]);
        if width == 0 {
            return (out, Some(arg));
        }
        let runs = by_edges(self.rows.indptr(), width);
        run_all(runs, width, &mut out, &mut arg, &|run, part, args| {
            let mut best = vec![T::Acc::ZERO; width];
            for ((v, row), arg) in run.zip(part.chunks_exact_mut(width)).zip(args.chunks_exact_mut(width)) {
                let edges = self.rows.row(v);
                let mut p = edges.start;
                if p < edges.end {
                    self.compare::<O, L, R, MAX, 1>(&mut best, arg, p, true, l, r);
                    p += 1;
                }
                while p + 4 <= edges.end {
                    self.compare::<O, L, R, MAX, 4>(&mut best, arg, p, false, l, r);
                    p += 4;
                }
                while p < edges.end {
                    self.compare::<O, L, R, MAX, 1>(&mut best, arg, p, false, l, r);
                    p += 1;
                }
                if !edges.is_empty() {
                    row.iter_mut().zip(&best).for_each(|(o, &b)| *o = T::of(b));
                }
            }
        });
        (out, Some(arg))
    }

    /// Lets the edges at `p..p + K`, in that order, win the columns where they are better; a `first` edge
    /// wins all.
    ///
    /// Not inlined: as arguments, `best` and `arg` are known not to overlap the operands, and only then
    /// does the loop vectorise.
    #[inline(never)]
    fn compare<O: Op, L: Cols, R: Cols, const MAX: bool, const K: usize>(
        &self,
        best: &mut [T::Acc],
        arg: &mut [i32],
        p: usize,
        first: bool,
        l: L,
        r: R,
    ) {
        let n = best.len();
        let edges: [_; K] = std::array::from_fn(|k| self.edge::<O, L, R>(p + k, n, l, r));
        let ids: [i32; K] = std::array::from_fn(|k| self.rows.edge_id(p + k) as i32);
        for ((b, a), j) in best.iter_mut().zip(&mut arg[..n]).zip(0..n) {
            let (mut value, mut winner) = (*b, *a);
            for ((lhs, rhs), id) in edges.into_iter().zip(ids) {
                let m = message::<T, O, L, R>(lhs, rhs, j, l, r);
                // Two selects instead of a branch around two stores.
                let take = first | better::<T::Acc, MAX>(m, value);
                value = if take { m } else { value };
                winner = if take { id } else { winner };
            }
            (*b, *a) = (value, winner);
        }
    }
}

/// Strictly better, so that the first of equal messages stays; a NaN beats every number and the first stays.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` asks for NaN without a call, so that the loop vectorises.
fn better<A: Acc, const MAX: bool>(m: A, best: A) -> bool {
    let beyond = if MAX { m > best } else { m < best };
    beyond | ((m != m) & (best == best))
}

#[inline(always)]
fn message<T: Elem, O: Op, L: Cols, R: Cols>(lhs: L::Row<'_, T>, rhs: R::Row<'_, T>, j: usize, l: L, r: R) -> T::Acc {
    let lhs = if O::LHS { l.get::<T>(lhs, j).acc() } else { T::Acc::ZERO };
    let rhs = if O::RHS { r.get::<T>(rhs, j).acc() } else { T::Acc::ZERO };
    O::apply(lhs, rhs)
}
