//! Gradients of GSpMM.
//!
//! ```text
//! d lhs[u] = Σ over out-edges (u, v, e) of w[v] · d op/d lhs · grad[v]     rows of CSR
//! d rhs[e] =                               w[v] · d op/d rhs · grad[v]     edges in id order
//! ```
//! `w` is 1 for sum and `1 / degree` for mean; for max and min an entry passes only where `e` won.
//! Axes that were broadcast are summed. Both passes gather, so every entry has one writer.

use super::elem::Acc;
use super::forward::gather_sum;
use super::split::{by_edges, evenly, run_all};
use super::{Cols, Elem, One, Same, Table, is};
use crate::gspmm::{BinaryOp, Columns, GspmmPlan, Reduce, Side};

/// What a gradient reads beside the plan; operands it does not need may be empty.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a, T> {
    pub(crate) grad: &'a [T],
    /// Winning edge ids, for max and min.
    pub(crate) arg: Option<&'a [i32]>,
    pub(crate) lhs: &'a [T],
    pub(crate) rhs: &'a [T],
}

/// Derivative of a message with respect to one operand ("own"), times the incoming gradient.
trait Chain: Sync {
    const OWN: bool = false;
    const OTHER: bool = false;
    fn apply<A: Acc>(grad: A, own: A, other: A) -> A;
}

macro_rules! chains {
    ($($name:ident, $own:literal, $other:literal, |$g:ident, $w:ident, $x:ident| $body:expr;)*) => {$(
        struct $name;
        impl Chain for $name {
            const OWN: bool = $own;
            const OTHER: bool = $other;
            #[inline(always)]
            fn apply<A: Acc>($g: A, $w: A, $x: A) -> A {
                $body
            }
        }
    )*};
}

chains! {
    Pass, false, false, |g, _w, _x| g;
    Minus, false, false, |g, _w, _x| -g;
    Times, false, true, |g, _w, x| g * x;
    Over, false, true, |g, _w, x| g / x;
    // Not g·x / w²: w² leaves the range of floats long before the quotient does.
    Quotient, true, true, |g, w, x| -(g * (x / w)) / w;
}

/// Adding contributions of message columns to the entries of an operand row; `f` gives that of one
/// column, `eight` those of eight columns from the one given.
trait Sum: Cols {
    fn sum<A: Acc>(self, acc: &mut [A], n: usize, f: impl Fn(usize) -> A, eight: impl Fn(usize) -> [A; 8]);
}

impl Sum for Same {
    #[inline(always)]
    fn sum<A: Acc>(self, acc: &mut [A], n: usize, f: impl Fn(usize) -> A, _: impl Fn(usize) -> [A; 8]) {
        for (a, j) in acc[..n].iter_mut().zip(0..n) {
            *a += f(j);
        }
    }
}

impl Sum for One {
    /// Eight partial sums in a fixed order: strict left-to-right addition could not use vector registers.
    #[inline(always)]
    fn sum<A: Acc>(self, acc: &mut [A], n: usize, f: impl Fn(usize) -> A, eight: impl Fn(usize) -> [A; 8]) {
        let mut lanes = [A::ZERO; 8];
        let whole = n / 8 * 8;
        for from in (0..whole).step_by(8) {
            for (lane, x) in lanes.iter_mut().zip(eight(from)) {
                *lane += x;
            }
        }
        let [a, b, c, d, e, g, h, i] = lanes;
        let mut sum = ((a + e) + (b + g)) + ((c + h) + (d + i));
        for j in whole..n {
            sum += f(j);
        }
        acc[0] += sum;
    }
}

impl Sum for Table<'_> {
    #[inline(always)]
    fn sum<A: Acc>(self, acc: &mut [A], n: usize, f: impl Fn(usize) -> A, _: impl Fn(usize) -> [A; 8]) {
        for (&at, j) in self.offsets[..n].iter().zip(0..n) {
            acc[at as usize] += f(j);
        }
    }
}

/// Gradient for one operand, `plan.operand_shape(side)`.
pub(crate) fn gradient<T: Elem>(plan: &GspmmPlan, side: Side, given: Given<'_, T>) -> Vec<T> {
    let job = Job { plan, side, given, width: plan.width() };
    // Such a plan has no offsets, and rows may be of any length.
    if job.width == 0 || plan.relation().num_edges() == 0 {
        return job.zeros();
    }
    match (plan.op(), side) {
        (BinaryOp::CopyRhs, Side::Lhs) | (BinaryOp::CopyLhs, Side::Rhs) => job.zeros(),
        (BinaryOp::Sub, Side::Rhs) => job.columns::<Minus>(),
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::CopyLhs | BinaryOp::CopyRhs, _) => job.columns::<Pass>(),
        (BinaryOp::Mul, _) => job.columns::<Times>(),
        (BinaryOp::Div, Side::Lhs) => job.columns::<Over>(),
        (BinaryOp::Div, Side::Rhs) => job.columns::<Quotient>(),
    }
}

/// One edge on its way from destination `v` to a row of the operand.
struct Edge {
    v: usize,
    id: usize,
    own: usize,
    other: usize,
}

struct Job<'a, T> {
    plan: &'a GspmmPlan,
    side: Side,
    given: Given<'a, T>,
    width: usize,
}

impl<T: Elem> Job<'_, T> {
    fn zeros(&self) -> Vec<T> {
        vec![T::zeroed(); self.plan.operand_rows(self.side) * self.plan.map(self.side).len]
    }

    /// Chooses the loop by layout; `own` is the operand that the gradient is for.
    fn columns<G: Chain>(&self) -> Vec<T> {
        let plan = self.plan;
        let (own, other) = match self.side {
            Side::Lhs => (plan.map(Side::Lhs), plan.map(Side::Rhs)),
            Side::Rhs => (plan.map(Side::Rhs), plan.map(Side::Lhs)),
        };
        // An operand that is not read has no say in the layout.
        let kinds = (&own.columns, if G::OTHER { &other.columns } else { &Columns::Same });
        if is(kinds, (&Columns::Same, &Columns::Same)) {
            self.masked::<G, _, _>(Same, Same)
        } else if G::OTHER && is(kinds, (&Columns::Same, &Columns::One)) {
            self.masked::<G, _, _>(Same, One)
        } else if is(kinds, (&Columns::One, &Columns::Same)) {
            self.masked::<G, _, _>(One, Same)
        } else {
            let (wt, xt) = (own.table(plan.out()), other.table(plan.out()));
            self.masked::<G, _, _>(Table { offsets: &wt, len: own.len }, Table { offsets: &xt, len: other.len })
        }
    }

    fn masked<G: Chain, W: Sum, X: Cols>(&self, own: W, other: X) -> Vec<T> {
        match self.given.arg {
            Some(arg) => self.run::<G, W, X, true>(arg, own, other),
            None => self.run::<G, W, X, false>(&[], own, other),
        }
    }

    fn run<G: Chain, W: Sum, X: Cols, const MASK: bool>(&self, arg: &[i32], own: W, other: X) -> Vec<T> {
        let (rel, len) = (self.plan.relation(), self.plan.map(self.side).len);
        let unit = !G::OTHER && !G::OWN;
        let is_sum = self.plan.reduce() == Reduce::Sum;
        if self.side == Side::Lhs && unit && is_sum && self.plan.map(Side::Lhs).columns == Columns::Same {
            // A plain sum over out-edges: the forward kernel on the reversed relation.
            return gather_sum(rel.csr(), self.given.grad, self.width);
        }
        let mut out = self.zeros();
        if out.is_empty() {
            return out;
        }
        match self.side {
            Side::Lhs => {
                let csr = rel.csr();
                let runs = by_edges(csr.indptr(), self.width);
                run_all(runs, len, &mut out, &mut [], &|run, part, _| {
                    let mut acc = vec![T::Acc::ZERO; len];
                    for (u, row) in run.zip(part.chunks_exact_mut(len)) {
                        acc.fill(T::Acc::ZERO);
                        for p in csr.row(u) {
                            let id = csr.edge_id(p) as usize;
                            let edge = Edge { v: csr.indices()[p] as usize, id, own: u, other: id };
                            self.edge::<G, W, X, MASK>(&mut acc, arg, &edge, own, other);
                        }
                        row.iter_mut().zip(&acc).for_each(|(o, &a)| *o = T::of(a));
                    }
                });
            }
            Side::Rhs => {
                let (src, dst) = (rel.src(), rel.dst());
                let runs = evenly(rel.num_edges(), self.width);
                run_all(runs, len, &mut out, &mut [], &|run, part, _| {
                    let mut acc = vec![T::Acc::ZERO; len];
                    for (id, row) in run.zip(part.chunks_exact_mut(len)) {
                        acc.fill(T::Acc::ZERO);
                        let edge = Edge { v: dst[id] as usize, id, own: id, other: src[id] as usize };
                        self.edge::<G, W, X, MASK>(&mut acc, arg, &edge, own, other);
                        row.iter_mut().zip(&acc).for_each(|(o, &a)| *o = T::of(a));
                    }
                });
            }
        }
        out
    }

    /// Adds what one edge brings to its operand row.
    #[inline(always)]
    fn edge<G: Chain, W: Sum, X: Cols, const MASK: bool>(&self, acc: &mut [T::Acc], arg: &[i32], edge: &Edge, own: W, other: X) {
        let n = self.width;
        let (w_data, x_data) = match self.side {
            Side::Lhs => (self.given.lhs, self.given.rhs),
            Side::Rhs => (self.given.rhs, self.given.lhs),
        };
        let grad = Same.row(self.given.grad, edge.v, n);
        let arg = if MASK { &arg[edge.v * n..][..n] } else { &[] };
        let w = if G::OWN { own.row(w_data, edge.own, n) } else { W::nothing() };
        let x = if G::OTHER { other.row(x_data, edge.other, n) } else { X::nothing() };
        let (scale, id) = (self.scale(edge.v), edge.id as i32);
        // Chosen, not multiplied by 0: an infinity on a losing edge must not become NaN.
        let passed = |d: T::Acc, winner: i32| if !MASK || winner == id { d } else { T::Acc::ZERO };
        let one = |j: usize| {
            let w = if G::OWN { own.get::<T>(w, j).acc() } else { T::Acc::ZERO };
            let x = if G::OTHER { other.get::<T>(x, j).acc() } else { T::Acc::ZERO };
            passed(G::apply(grad[j].acc() * scale, w, x), if MASK { arg[j] } else { id })
        };
        let eight = |from: usize| {
            let grad = Same.eight(grad, from);
            let winners: [i32; 8] = if MASK {
                let block = &arg[from..][..8];
                std::array::from_fn(|i| block[i])
            } else {
                [id; 8]
            };
            let w = if G::OWN { own.eight::<T>(w, from) } else { [T::zeroed(); 8] };
            let x = if G::OTHER { other.eight::<T>(x, from) } else { [T::zeroed(); 8] };
            std::array::from_fn(|i| passed(G::apply(grad[i].acc() * scale, w[i].acc(), x[i].acc()), winners[i]))
        };
        own.sum(acc, n, one, eight);
    }

    #[inline(always)]
    fn scale(&self, v: usize) -> T::Acc {
        if self.plan.reduce() == Reduce::Mean {
            T::Acc::ONE / T::Acc::count(self.plan.relation().csc().row(v).len() as u32)
        } else {
            T::Acc::ONE
        }
    }
}
