//! Gradients of GSpMM: dispatches to a kernel.
//!
//! ```text
//! d lhs[u] = Σ over out-edges (u, v, e) of w[v] · d op/d lhs · grad[v]     rows of CSR
//! d rhs[e] =                               w[v] · d op/d rhs · grad[v]     edges in id order
//! ```
//! `w` is 1 for sum and `1 / degree` for mean. For max and min an edge contributes only to the columns of which it is the
//! argmax (argmin). Broadcast axes are summed. All passes gather, so every entry has one writer.
//!
//! Regular layouts are sums over the reversed relation, and use [`gather`](super::gather),
//! [`argmax_grad`](super::argmax_grad) and [`product_grad`](super::product_grad). All other broadcasting uses the general
//! loop of this file, which reads tables of offsets.

use std::borrow::Cow;

use super::argmax::bit_words;
use super::argmax_grad::{SavedArgmax, select_grad};
use super::gather::{Any, CopyLhs, Messages, Mul, Op, sum};
use super::layout::{HeadsOf8, HeadsOf16, Layout, One, Same, Table};
use super::product_grad::{Product, Reduced, product_grad};
use super::weighted_sum::{Weighted, weighted_sum};
use crate::math::derivatives::{Chain, Minus, Over, Pass, Quotient, Times};
use crate::number::Acc;
use crate::number::Elem;
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::runs::{by_edges, evenly, run_all};
use burn_gnn_plan::{BinaryOp, Columns, GspmmPlan, Reduce, Side};
use burn_gnn_structure::internal::prefetch;

/// The tensors that gradients are computed from. Operands that the derivative does not read may be empty.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T> {
    /// Gradient of the result.
    pub grad: &'a [T],
    /// For max and min: the argmax that `forward_argmax` returned.
    pub arg: Option<&'a [i32]>,
    /// The left operand.
    pub lhs: &'a [T],
    /// The right operand.
    pub rhs: &'a [T],
}

/// Gradient for one operand, `plan.operand_shape(side)`.
pub(crate) fn gradient<T: Elem>(plan: &GspmmPlan, side: Side, given: GradInputs<'_, T>) -> Vec<T> {
    let job = Job { plan, side, given, width: plan.width() };
    // A plan of such a shape has no tables of offsets, and its operands may have any row length.
    if job.width == 0 || plan.relation().num_edges() == 0 {
        return job.zeros();
    }
    if let Some(out) = job.regular() {
        return out;
    }
    match (plan.op(), side) {
        (BinaryOp::CopyRhs, Side::Lhs) | (BinaryOp::CopyLhs, Side::Rhs) => job.zeros(),
        (BinaryOp::Sub, Side::Rhs) => job.general::<Minus>(),
        (BinaryOp::Add | BinaryOp::Sub | BinaryOp::CopyLhs | BinaryOp::CopyRhs, _) => {
            job.general::<Pass>()
        }
        (BinaryOp::Mul, _) => job.general::<Times>(),
        (BinaryOp::Div, Side::Lhs) => job.general::<Over>(),
        (BinaryOp::Div, Side::Rhs) => job.general::<Quotient>(),
    }
}

/// The gradients of both operands in one pass over the edges; `None` if there is no kernel for this plan.
pub(crate) fn gradients<T: Elem>(
    plan: &GspmmPlan,
    given: GradInputs<'_, T>,
) -> Option<(Vec<T>, Vec<T>)> {
    let job = Job { plan, side: Side::Lhs, given, width: plan.width() };
    let regular = job.width > 0
        && plan.relation().num_edges() > 0
        && plan.map(Side::Lhs).columns == Columns::Same;
    if plan.op() != BinaryOp::Mul || plan.reduce().selects() || !regular || job.rounds() {
        return None;
    }
    match plan.map(Side::Rhs).columns {
        Columns::Same => Some(job.product(Same)),
        Columns::One => Some(job.product(One)),
        Columns::Repeat(8) => Some(job.product(HeadsOf8)),
        Columns::Repeat(times) => Some(job.product(HeadsOf16(times))),
        Columns::Table(_) => None,
    }
}

struct Job<'a, T: Elem> {
    plan: &'a GspmmPlan,
    side: Side,
    given: GradInputs<'a, T>,
    width: usize,
}

impl<T: Elem> Job<'_, T> {
    fn zeros(&self) -> Vec<T> {
        vec![T::zeroed(); self.plan.operand_rows(self.side) * self.plan.map(self.side).len]
    }

    /// The gradient by a specialised kernel, if there is one for this plan.
    fn regular(&self) -> Option<Vec<T>> {
        let (plan, given) = (self.plan, self.given);
        let own = &plan.map(self.side).columns;
        match (self.side, plan.op(), given.arg) {
            _ if *own != Columns::Same
                && !(self.side == Side::Rhs && plan.op() == BinaryOp::Mul) =>
            {
                None
            }
            (Side::Lhs, BinaryOp::Add | BinaryOp::Sub | BinaryOp::CopyLhs, None) => {
                Some(match self.shares() {
                    Some(shares) => weighted_sum(&Weighted {
                        rows: Adjacency::new(plan.relation().csr()),
                        x: given.grad,
                        scale: Some(&shares),
                        weight: None,
                        after: None,
                        bias: None,
                        activation: burn_gnn_plan::Activation::None,
                        width: self.width,
                    }),
                    None => self.gather(given.grad, CopyLhs, Same),
                })
            }
            (Side::Lhs, BinaryOp::Add | BinaryOp::Sub | BinaryOp::CopyLhs, Some(arg)) => {
                let argmax = bit_words(plan)
                    .map_or(SavedArgmax::Ids(arg), |words| SavedArgmax::Bits { bits: arg, words });
                Some(select_grad(
                    Adjacency::new(plan.relation().csr()),
                    given.grad,
                    argmax,
                    self.width,
                ))
            }
            (Side::Lhs, BinaryOp::Mul | BinaryOp::Div, None) if self.rounds() => None,
            (Side::Lhs, BinaryOp::Mul, None) => {
                let grad = self.shared_grad();
                match plan.map(Side::Rhs).columns {
                    Columns::Same => Some(self.gather(&grad, Mul, Same)),
                    Columns::One => Some(self.gather(&grad, Mul, One)),
                    Columns::Repeat(8) => Some(self.gather(&grad, Mul, HeadsOf8)),
                    Columns::Repeat(times) => Some(self.gather(&grad, Mul, HeadsOf16(times))),
                    Columns::Table(_) => None,
                }
            }
            (Side::Lhs, op @ BinaryOp::Div, None) => match plan.map(Side::Rhs).columns {
                Columns::Same => Some(self.gather(&self.shared_grad(), Any(op), Same)),
                Columns::One => Some(self.gather(&self.shared_grad(), Any(op), One)),
                _ => None,
            },
            (Side::Rhs, BinaryOp::Mul, None) => {
                gradients(plan, given).map(|(_, d_weight)| d_weight)
            }
            (Side::Rhs, BinaryOp::Add | BinaryOp::CopyRhs, None) => Some(self.spread(T::Acc::ONE)),
            (Side::Rhs, BinaryOp::Sub, None) => Some(self.spread(-T::Acc::ONE)),
            _ => None,
        }
    }

    /// `1 / degree` of every destination under mean.
    fn shares(&self) -> Option<Vec<T::Acc>> {
        let degrees =
            || self.plan.relation().in_degrees().map(|d| T::Acc::ONE / T::Acc::count(d)).collect();
        (self.plan.reduce() == Reduce::Mean).then(degrees)
    }

    /// Whether `grad / degree` would be rounded to 16 bits before it is summed.
    fn rounds(&self) -> bool {
        self.plan.reduce() == Reduce::Mean && size_of::<T>() < size_of::<T::Acc>()
    }

    /// The gradient of the sum of messages: the gradient of the result, divided by the degree for mean.
    fn shared_grad(&self) -> Cow<'_, [T]> {
        let Some(shares) = self.shares() else { return Cow::Borrowed(self.given.grad) };
        let n = self.width;
        Cow::Owned(collect_rows(&evenly(shares.len(), n), n, &|run, out| {
            for v in run {
                let row = &self.given.grad[v * n..][..n];
                out.put_from(n, |j| T::of(row[j].acc() * shares[v]));
            }
        }))
    }

    /// A sum over out-edges: the forward kernel on the reversed relation.
    fn gather<O: Op, R: Layout>(&self, grad: &[T], op: O, layout: R) -> Vec<T> {
        sum(
            &Messages::new(
                Adjacency::new(self.plan.relation().csr()),
                grad,
                self.given.rhs,
                op,
                layout,
                self.width,
            ),
            false,
        )
    }

    fn product<R: Reduced>(&self, layout: R) -> (Vec<T>, Vec<T>) {
        let grad = self.shared_grad();
        let GradInputs { lhs, rhs, .. } = self.given;
        // If only the weights are tracked, forward did not save them.
        let weight =
            (rhs.len() == self.plan.operand_shape(Side::Rhs).num_elements()).then_some(rhs);
        product_grad(&Product {
            rows: Adjacency::new(self.plan.relation().csr()),
            grad: &grad,
            lhs,
            weight,
            layout,
            width: self.width,
        })
    }

    /// Copies the gradient of every destination to its in-edges, times `sign`.
    fn spread(&self, sign: T::Acc) -> Vec<T> {
        let (dst, shares, n) = (self.plan.relation().dst(), self.shares(), self.width);
        let grad = self.given.grad;
        collect_rows(&evenly(dst.len(), n), n, &|run, out| {
            for e in run {
                if let Some(&v) = dst.get(e + 16) {
                    prefetch(grad, v as usize * n, n);
                }
                let v = dst[e] as usize;
                let (row, factor) =
                    (&grad[v * n..][..n], sign * shares.as_ref().map_or(T::Acc::ONE, |s| s[v]));
                // The sum with 0 makes 0 of -0.
                out.put_from(n, |j| T::of(T::Acc::ZERO + row[j].acc() * factor));
            }
        })
    }

    /// Any operator, reducer and broadcasting.
    fn general<G: Chain>(&self) -> Vec<T> {
        let (plan, rel, n) = (self.plan, self.plan.relation(), self.width);
        let (own, other) = match self.side {
            Side::Lhs => (plan.map(Side::Lhs), plan.map(Side::Rhs)),
            Side::Rhs => (plan.map(Side::Rhs), plan.map(Side::Lhs)),
        };
        let (wt, xt) = (own.table(plan.out()), other.table(plan.out()));
        let (own, other) =
            (Table { offsets: &wt, len: own.len }, Table { offsets: &xt, len: other.len });
        let shares = self.shares();
        let mut out = self.zeros();
        if out.is_empty() {
            return out;
        }
        let work = |edge: &Edge, acc: &mut [T::Acc]| {
            self.edge::<G>(acc, shares.as_deref(), edge, own, other)
        };
        match self.side {
            Side::Lhs => {
                let csr = Adjacency::new(rel.csr());
                run_all(by_edges(csr.indptr, n), own.len, &mut out, &mut [], &|run, part, _| {
                    let mut acc = vec![T::Acc::ZERO; own.len];
                    for (u, row) in run.zip(part.chunks_exact_mut(own.len)) {
                        acc.fill(T::Acc::ZERO);
                        for p in csr.row(u) {
                            let id = csr.edge_id(p);
                            work(
                                &Edge { v: csr.indices[p] as usize, id, own: u, other: id },
                                &mut acc,
                            );
                        }
                        row.iter_mut().zip(&acc).for_each(|(o, &a)| *o = T::of(a));
                    }
                });
            }
            Side::Rhs => {
                let (src, dst) = (rel.src(), rel.dst());
                run_all(evenly(rel.num_edges(), n), own.len, &mut out, &mut [], &|run, part, _| {
                    let mut acc = vec![T::Acc::ZERO; own.len];
                    for (id, row) in run.zip(part.chunks_exact_mut(own.len)) {
                        acc.fill(T::Acc::ZERO);
                        work(
                            &Edge { v: dst[id] as usize, id, own: id, other: src[id] as usize },
                            &mut acc,
                        );
                        row.iter_mut().zip(&acc).for_each(|(o, &a)| *o = T::of(a));
                    }
                });
            }
        }
        out
    }

    /// Adds the contribution of one edge to a row of the operand's gradient.
    #[inline]
    fn edge<G: Chain>(
        &self,
        acc: &mut [T::Acc],
        shares: Option<&[T::Acc]>,
        edge: &Edge,
        own: Table<'_>,
        other: Table<'_>,
    ) {
        let n = self.width;
        let (w_data, x_data) = match self.side {
            Side::Lhs => (self.given.lhs, self.given.rhs),
            Side::Rhs => (self.given.rhs, self.given.lhs),
        };
        let grad = &self.given.grad[edge.v * n..][..n];
        let argmax = self.given.arg.map(|arg| &arg[edge.v * n..][..n]);
        let w = if G::OWN { &w_data[edge.own * own.len..][..own.len] } else { &[] };
        let x = if G::OTHER { &x_data[edge.other * other.len..][..other.len] } else { &[] };
        let (scale, id) = (shares.map_or(T::Acc::ONE, |s| s[edge.v]), edge.id as i32);
        for (j, g) in (0..n).zip(grad) {
            // Skipped rather than multiplied by 0: an infinity of another edge must not become NaN.
            if argmax.is_some_and(|argmax| argmax[j] != id) {
                continue;
            }
            let at = own.offsets[j] as usize;
            let w = if G::OWN { w[at].acc() } else { T::Acc::ZERO };
            let x = if G::OTHER { x[other.offsets[j] as usize].acc() } else { T::Acc::ZERO };
            acc[at] += G::apply(g.acc() * scale, w, x);
        }
    }
}

/// An edge, and the rows of the operands that belong to it.
struct Edge {
    /// Destination.
    v: usize,
    id: usize,
    /// Row of the operand whose gradient is computed.
    own: usize,
    /// Row of the other operand.
    other: usize,
}
