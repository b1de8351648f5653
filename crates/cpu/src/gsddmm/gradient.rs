//! Computes gradients of GSDDMM that are not a GSpMM.
//!
//! These are gradients of edge operands, of divisions, and where an axis was broadcast or both operands are on the same
//! endpoint.
//!
//! ```text
//! d own[n] = Σ over the edges e of n of d op/d own · grad[e]     rows of CSR (u) or CSC (v)
//! d own[e] =                            d op/d own · grad[e]     edges in id order
//! ```
//! Broadcast axes are summed. Every pass gathers, so every entry has one writer.

use std::marker::PhantomData;
use std::ops::Range;

use super::forward::{AHEAD, LANES, Rows, block, fold, load, prefetch_row};
use crate::math::derivatives::{Chain, Over, Pass, Quotient, Times};
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::{Sink, zeros};
use crate::parallel::runs::{by_edges, evenly};
use crate::prefetch::{FAR, from_memory};
use crate::simd::instruction_sets::{Vectorised, widest};
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Side, Target};
use burn_gnn_structure::internal::Cache;

/// What a gradient reads; operands that it does not need may be empty.
#[derive(Clone, Copy)]
pub struct GradInputs<'a, T> {
    /// Of the result.
    pub grad: &'a [T],
    /// The left operand.
    pub lhs: &'a [T],
    /// The right operand.
    pub rhs: &'a [T],
}

/// Where the other operand's row is, seen from an edge of row `n`.
#[derive(Clone, Copy)]
enum Other<'a> {
    /// On the same endpoint.
    Same,
    /// On the other endpoint.
    Far,
    /// On edges, or on an endpoint of the edge that is the row.
    OfEdge(Rows<'a>),
}

struct Job<'a, T> {
    plan: &'a GsddmmPlan,
    /// Edges of each row; none if rows are edges.
    rows: Option<Adjacency<'a>>,
    grad: &'a [T],
    own: &'a [T],
    other: &'a [T],
    other_of: Other<'a>,
    side: Side,
    /// The sum is subtracted.
    minus: bool,
}

/// Gradient for one operand, `plan.operand_shape(side)`.
pub(crate) fn gradient<T: Elem>(plan: &GsddmmPlan, side: Side, given: GradInputs<'_, T>) -> Vec<T> {
    let (relation, op) = (plan.relation(), plan.op());
    // Such a plan has no offsets, and rows may be of any length.
    if plan.width() == 0 || relation.num_edges() == 0 {
        return zeros(plan.operand_rows(side) * plan.map(side).len);
    }
    let (target, other) = (plan.target(side), plan.target(side.opposite()));
    let rows = match target {
        Target::Src => Some(Adjacency::new(relation.csr())),
        Target::Dst => Some(Adjacency::new(relation.csc())),
        Target::Edge => None,
    };
    let other_of = match (target, other) {
        (Target::Edge, _) | (_, Target::Edge) => Other::OfEdge(Rows::new(plan, other)),
        (a, b) if a == b => Other::Same,
        _ => Other::Far,
    };
    let (own, other) =
        if side == Side::Lhs { (given.lhs, given.rhs) } else { (given.rhs, given.lhs) };
    let minus = op == SddmmOp::Sub && side == Side::Rhs;
    let job = Job { plan, rows, grad: given.grad, own, other, other_of, side, minus };
    match (op, side) {
        (SddmmOp::Mul, _) => job.walks::<Times, false>(),
        (SddmmOp::Dot, _) => job.walks::<Times, true>(),
        (SddmmOp::Div, Side::Lhs) => job.walks::<Over, false>(),
        (SddmmOp::Div, Side::Rhs) => job.walks::<Quotient, false>(),
        (SddmmOp::Add | SddmmOp::Sub | SddmmOp::CopyLhs | SddmmOp::CopyRhs, _) => {
            match job.walk(side) {
                true => job.run::<Pass, true, true, false>(),
                false => job.run::<Pass, false, true, false>(),
            }
        }
    }
}

impl<T: Elem> Job<'_, T> {
    fn walk(&self, side: Side) -> bool {
        self.plan.blocks().walks[usize::from(side == Side::Rhs)]
    }

    fn walks<G: Chain, const DOT: bool>(&self) -> Vec<T> {
        match (self.walk(self.side), self.walk(self.side.opposite())) {
            (true, true) => self.run::<G, true, true, DOT>(),
            (true, false) => self.run::<G, true, false, DOT>(),
            (false, _) => self.run::<G, false, true, DOT>(),
        }
    }

    fn run<G: Chain, const W: bool, const X: bool, const DOT: bool>(&self) -> Vec<T> {
        let plan = self.plan;
        let runs = match self.rows {
            Some(rows) => by_edges(rows.indptr, plan.width()),
            None => evenly(plan.relation().num_edges(), plan.width()),
        };
        collect_rows(&runs, plan.map(self.side).len, &|run, sink| {
            widest::<T, _>(Run::<T, G, W, X, DOT> { job: self, run, sink, chain: PhantomData });
        })
    }

    /// Asks for what the edge at position `p` reads. Rows of one edge each come in a stream.
    #[inline(always)]
    fn prefetch<G: Chain>(
        &self,
        to: Cache,
        rows: Adjacency<'_>,
        p: usize,
        grad_len: usize,
        len: usize,
    ) {
        let Some(&far) = rows.indices.get(p) else { return };
        let id = rows.edge_id(p);
        prefetch_row(to, self.grad, id, grad_len);
        match self.other_of {
            _ if !G::OTHER => {}
            Other::Same => {}
            Other::Far => prefetch_row(to, self.other, far as usize, len),
            Other::OfEdge(_) => prefetch_row(to, self.other, id, len),
        }
    }
}

/// One run of rows.
struct Run<'a, 's, 'o, T: Elem, G, const W: bool, const X: bool, const DOT: bool> {
    job: &'a Job<'a, T>,
    run: Range<usize>,
    sink: &'s mut Sink<'o, T>,
    chain: PhantomData<G>,
}

impl<T: Elem, G: Chain, const W: bool, const X: bool, const DOT: bool> Vectorised
    for Run<'_, '_, '_, T, G, W, X, DOT>
{
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let job = self.job;
        let (plan, side) = (job.plan, job.side);
        let blocks = plan.blocks();
        let (own_len, other_len, grad_len) =
            (plan.map(side).len, plan.map(side.opposite()).len, plan.out_width());
        let (mine, theirs) = match side {
            Side::Lhs => (&blocks.starts[0], &blocks.starts[1]),
            Side::Rhs => (&blocks.starts[1], &blocks.starts[0]),
        };
        let grad_block = if DOT { 1 } else { blocks.len };
        let other = if G::OTHER { size_of_val(job.other) } else { 0 };
        let from_memory = from_memory(size_of_val(job.grad) + other);
        let mut acc = vec![T::Acc::ZERO; own_len];
        for n in self.run {
            acc.fill(T::Acc::ZERO);
            let own = if G::OWN { &job.own[n * own_len..][..own_len] } else { &[] };
            for p in job.rows.map_or(n..n + 1, |rows| rows.row(n)) {
                let (id, far) = match job.rows {
                    Some(rows) => {
                        if from_memory {
                            job.prefetch::<G>(
                                Cache::Second,
                                rows,
                                p + FAR * AHEAD,
                                grad_len,
                                other_len,
                            );
                        }
                        job.prefetch::<G>(Cache::First, rows, p + AHEAD, grad_len, other_len);
                        (rows.edge_id(p), rows.indices[p] as usize)
                    }
                    None => (n, n),
                };
                let other = match job.other_of {
                    _ if !G::OTHER => &[],
                    Other::Same => &job.other[n * other_len..][..other_len],
                    Other::Far => &job.other[far * other_len..][..other_len],
                    Other::OfEdge(of) => &job.other[of.at(id) * other_len..][..other_len],
                };
                let grad = &job.grad[id * grad_len..][..grad_len];
                for ((&a, &b), g) in mine.iter().zip(theirs).zip(grad.chunks_exact(grad_block)) {
                    let w = if G::OWN { block::<T, W>(own, a, blocks.len) } else { &[] };
                    let x = if G::OTHER { block::<T, X>(other, b, blocks.len) } else { &[] };
                    let to = if W { blocks.len } else { 1 };
                    add::<T, G, W, X, DOT>(&mut acc[a as usize..][..to], g, w, x, blocks.len);
                }
            }
            if job.minus {
                // Not a change of sign: the gradient of a node without edges is 0, not -0.
                acc.iter_mut().for_each(|a| *a = T::Acc::ZERO - *a);
            }
            self.sink.put_acc(&acc);
        }
    }
}

/// Adds what one block of one edge brings.
#[inline(always)]
fn add<T: Elem, G: Chain, const W: bool, const X: bool, const DOT: bool>(
    acc: &mut [T::Acc],
    g: &[T],
    w: &[T],
    x: &[T],
    len: usize,
) {
    if W {
        let whole = len / 8 * 8;
        for at in (0..whole).step_by(8) {
            let d = some::<T, G, W, X, DOT, 8>(g, w, x, at);
            for (a, d) in acc[at..][..8].iter_mut().zip(d) {
                *a += d;
            }
        }
        for (a, j) in acc[whole..].iter_mut().zip(whole..len) {
            *a += some::<T, G, W, X, DOT, 1>(g, w, x, j)[0];
        }
    } else {
        let mut lanes = [T::Acc::ZERO; LANES];
        let whole = len / LANES * LANES;
        for at in (0..whole).step_by(LANES) {
            let d = some::<T, G, W, X, DOT, LANES>(g, w, x, at);
            for (lane, d) in lanes.iter_mut().zip(d) {
                *lane += d;
            }
        }
        let mut rest = T::Acc::ZERO;
        for j in whole..len {
            rest += some::<T, G, W, X, DOT, 1>(g, w, x, j)[0];
        }
        acc[0] += fold(lanes) + rest;
    }
}

/// Contributions of `N` columns.
#[inline(always)]
fn some<T: Elem, G: Chain, const W: bool, const X: bool, const DOT: bool, const N: usize>(
    g: &[T],
    w: &[T],
    x: &[T],
    at: usize,
) -> [T::Acc; N] {
    let g: [T; N] = if DOT { [g[0]; N] } else { load::<T, true, N>(g, at) };
    let w: [T; N] = if G::OWN { load::<T, W, N>(w, at) } else { [T::zeroed(); N] };
    let x: [T; N] = if G::OTHER { load::<T, X, N>(x, at) } else { [T::zeroed(); N] };
    std::array::from_fn(|i| G::apply(g[i].acc(), w[i].acc(), x[i].acc()))
}
