//! Computes `out[e] = op(lhs at its target, rhs at its target)` on slices.
//!
//! ```text
//! parallel for runs of edges in id order:      parallel for runs of destinations with equal edges:
//!   prefetch the rows of edge e + AHEAD          row = near[v]
//!   out[e] = op(lhs[row of e], rhs[row of e])    for (u, e) in row v of CSC: out[e] = far[u] · row
//! ```
//! In edge order the output is written sequentially, but both operand rows are read at random. A dot of two wide node
//! features has a small output and large operand rows, so it walks CSC instead: the row of the destination stays in
//! cache, and only the result, 4 bytes per edge, is written at random.
//!
//! The gradients of `out[e] = l[src e] · r[dst e]` are GSpMMs: `dl[u] = Σ over out-edges e of grad[e] · r[dst e]`, and
//! `dr[v] = Σ over in-edges e of grad[e] · l[src e]`.

// One index runs over several arrays at once.
#![allow(clippy::needless_range_loop)]

use std::marker::PhantomData;
use std::ops::Range;

use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::{Sink, zeros};
use crate::parallel::runs::{by_edges, evenly};
use crate::parallel::scatter::scatter;
use crate::parallel::scatter::{EdgeRows, Scattered};
use crate::simd::instruction_sets::{Vectorised, widest};
use burn_gnn_plan::{GsddmmPlan, SddmmOp, Side, Target};
use burn_gnn_structure::internal::{Cache, prefetch_to};

/// How many edges ahead rows are prefetched.
pub(super) const AHEAD: usize = 16;
/// Bytes of a row that are prefetched; the processor's own prefetcher follows longer rows.
const PREFETCHED: usize = 1024;
/// Row bytes from which a dot walks CSC.
const WIDE: usize = 64;

/// Row of an operand for each edge.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    Table(&'a [u32]),
    Edges,
}

impl<'a> Rows<'a> {
    pub(super) fn new(plan: &'a GsddmmPlan, target: Target) -> Self {
        match target {
            Target::Src => Self::Table(plan.relation().src()),
            Target::Dst => Self::Table(plan.relation().dst()),
            Target::Edge => Self::Edges,
        }
    }
    #[inline(always)]
    pub(super) fn at(self, e: usize) -> usize {
        match self {
            Self::Table(t) => t[e] as usize,
            Self::Edges => e,
        }
    }
    /// Prefetches the row of edge `e`, if the edge exists. Rows in edge order need no prefetch: the processor's own
    /// prefetcher follows them.
    #[inline(always)]
    pub(super) fn prefetch<T>(self, data: &[T], e: usize, len: usize) {
        if let Self::Table(t) = self
            && let Some(&row) = t.get(e)
        {
            prefetch_row(Cache::First, data, row as usize, len);
        }
    }
}

/// Prefetches the first [`PREFETCHED`] bytes of row `row`.
#[inline(always)]
pub(super) fn prefetch_row<T>(to: Cache, data: &[T], row: usize, len: usize) {
    prefetch_to(to, data, row * len, len.min(PREFETCHED / size_of::<T>()));
}

/// `N` entries of a block from `at`, or its one entry `N` times.
#[inline(always)]
pub(super) fn load<T: Copy, const WALKS: bool, const N: usize>(block: &[T], at: usize) -> [T; N] {
    if WALKS {
        let part = &block[at..][..N];
        std::array::from_fn(|i| part[i])
    } else {
        [block[0]; N]
    }
}

/// The part of a row that a block of `len` columns reads.
#[inline(always)]
pub(super) fn block<T, const WALKS: bool>(row: &[T], start: u32, len: usize) -> &[T] {
    &row[start as usize..][..if WALKS { len } else { 1 }]
}

/// Partial sums of a reduction over columns: column `j` goes to sum `j % 16` (a rest of
/// less than 16 columns to `j % 8`), whatever the vector width.
pub(super) const LANES: usize = 16;

/// The sum of the partial sums, in a fixed order.
#[inline(always)]
pub(super) fn fold<A: Acc>(lanes: [A; LANES]) -> A {
    let eight: [A; 8] = std::array::from_fn(|i| lanes[i] + lanes[i + 8]);
    let four: [A; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// `Σ l[j] · r[j]` over a block.
#[inline(always)]
fn dot<T: Elem, const L: bool, const R: bool>(l: &[T], r: &[T], len: usize) -> T::Acc {
    let mut lanes = [T::Acc::ZERO; LANES];
    if L && R {
        let ((l, l_rest), (r, r_rest)) =
            (l[..len].as_chunks::<LANES>(), r[..len].as_chunks::<LANES>());
        for (x, y) in l.iter().zip(r) {
            for i in 0..LANES {
                lanes[i] += x[i].acc() * y[i].acc();
            }
        }
        let (mut l_rest, mut r_rest) = (l_rest, r_rest);
        // Heads are often 8 wide.
        if let (Some((x, l)), Some((y, r))) =
            (l_rest.split_first_chunk::<8>(), r_rest.split_first_chunk::<8>())
        {
            for i in 0..8 {
                lanes[i] += x[i].acc() * y[i].acc();
            }
            (l_rest, r_rest) = (l, r);
        }
        for ((lane, x), y) in lanes.iter_mut().zip(l_rest).zip(r_rest) {
            *lane += x.acc() * y.acc();
        }
    } else {
        for j in 0..len {
            lanes[j % LANES] += load::<T, L, 1>(l, j)[0].acc() * load::<T, R, 1>(r, j)[0].acc();
        }
    }
    fold(lanes)
}

/// An operator as a type.
trait Op: Sync {
    const DOT: bool = false;
    fn apply<A: Acc>(l: A, r: A) -> A;
}

macro_rules! ops {
    ($($name:ident, $dot:literal, |$l:ident, $r:ident| $body:expr;)*) => {$(
        struct $name;
        impl Op for $name {
            const DOT: bool = $dot;
            #[inline(always)]
            fn apply<A: Acc>($l: A, $r: A) -> A {
                $body
            }
        }
    )*};
}

ops! {
    Add, false, |l, r| l + r;
    Sub, false, |l, r| l - r;
    Mul, false, |l, r| l * r;
    Div, false, |l, r| l / r;
    Dot, true, |l, r| l * r;
}

/// Result of an operator on two operands, `plan.out_shape()`.
pub(crate) fn forward<T: Elem>(plan: &GsddmmPlan, lhs: &[T], rhs: &[T]) -> Vec<T> {
    // Such a plan has no offsets, and rows may be of any length.
    if plan.width() == 0 || plan.relation().num_edges() == 0 {
        return zeros(plan.relation().num_edges() * plan.out_width());
    }
    let job = Job {
        plan,
        data: [lhs, rhs],
        rows: [Side::Lhs, Side::Rhs].map(|s| Rows::new(plan, plan.target(s))),
        lens: [Side::Lhs, Side::Rhs].map(|s| plan.map(s).len),
    };
    match plan.op() {
        SddmmOp::Add => job.run::<Add>(),
        SddmmOp::Sub => job.run::<Sub>(),
        SddmmOp::Mul => job.run::<Mul>(),
        SddmmOp::Div => job.run::<Div>(),
        SddmmOp::Dot => match job.far() {
            Some(far) => job.walk(far),
            None => job.run::<Dot>(),
        },
        SddmmOp::CopyLhs => copy(plan, Side::Lhs, lhs),
        SddmmOp::CopyRhs => copy(plan, Side::Rhs, rhs),
    }
}

/// Result of a copy, `plan.out_shape()`: the row of `x` for every edge.
pub(crate) fn copy<T: Elem>(plan: &GsddmmPlan, side: Side, x: &[T]) -> Vec<T> {
    let width = plan.width();
    if width == 0 || plan.relation().num_edges() == 0 {
        return zeros(plan.relation().num_edges() * width);
    }
    let rows = Rows::new(plan, plan.target(side));
    collect_rows(&evenly(plan.relation().num_edges(), width), width, &|run, sink| {
        for e in run {
            rows.prefetch(x, e + AHEAD, width);
            sink.put(&x[rows.at(e) * width..][..width]);
        }
    })
}

struct Job<'a, T> {
    plan: &'a GsddmmPlan,
    data: [&'a [T]; 2],
    rows: [Rows<'a>; 2],
    lens: [usize; 2],
}

impl<T: Elem> Job<'_, T> {
    /// The operand on sources, if the dot is one of two endpoints and walks CSC.
    fn far(&self) -> Option<usize> {
        let plan = self.plan;
        let far = match (plan.target(Side::Lhs), plan.target(Side::Rhs)) {
            (Target::Src, Target::Dst) => 0,
            (Target::Dst, Target::Src) => 1,
            _ => return None,
        };
        let wide = plan.width() * size_of::<T>() >= WIDE && plan.blocks().walks == [true; 2];
        // Where CSC order is edge order, edges in id order have both advantages.
        (wide && plan.relation().csc().edge_ids().is_some()).then_some(far)
    }

    fn run<O: Op>(&self) -> Vec<T> {
        match self.plan.blocks().walks {
            [true, true] => self.by_id::<O, true, true>(),
            [true, false] => self.by_id::<O, true, false>(),
            [false, _] => self.by_id::<O, false, true>(),
        }
    }

    fn by_id<O: Op, const L: bool, const R: bool>(&self) -> Vec<T> {
        let runs = evenly(self.plan.relation().num_edges(), self.plan.width());
        collect_rows(&runs, self.plan.out_width(), &|run, sink| {
            widest::<T, _>(ById::<T, O, L, R> { job: self, run, sink, op: PhantomData });
        })
    }

    fn walk(&self, far: usize) -> Vec<T> {
        let relation = self.plan.relation();
        let runs = by_edges(relation.csc().indptr(), self.plan.width());
        let out = Scattered::by_edge(Adjacency::new(relation.csc()), &runs, self.plan.out_width());
        scatter(out, runs, &|run, out| widest::<T, _>(Walk { job: self, run, far, out }))
    }
}

/// One run of edges in id order.
struct ById<'a, 's, 'o, T: Elem, O, const L: bool, const R: bool> {
    job: &'a Job<'a, T>,
    run: Range<usize>,
    sink: &'s mut Sink<'o, T>,
    op: PhantomData<O>,
}

impl<T: Elem, O: Op, const L: bool, const R: bool> Vectorised for ById<'_, '_, '_, T, O, L, R> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Job { plan, data: [lhs, rhs], rows: [lhs_of, rhs_of], lens: [lhs_len, rhs_len] } =
            *self.job;
        let blocks = plan.blocks();
        let len = blocks.len;
        for e in self.run {
            lhs_of.prefetch(lhs, e + AHEAD, lhs_len);
            rhs_of.prefetch(rhs, e + AHEAD, rhs_len);
            let l = &lhs[lhs_of.at(e) * lhs_len..][..lhs_len];
            let r = &rhs[rhs_of.at(e) * rhs_len..][..rhs_len];
            if O::DOT && L && R && blocks.starts[0].len() == 1 {
                self.sink.fill(1, T::of(dot::<T, L, R>(l, r, len)));
                continue;
            }
            for (&a, &b) in blocks.starts[0].iter().zip(&blocks.starts[1]) {
                let (l, r) = (block::<T, L>(l, a, len), block::<T, R>(r, b, len));
                if O::DOT {
                    self.sink.fill(1, T::of(dot::<T, L, R>(l, r, len)));
                } else {
                    let whole = len / 8 * 8;
                    for at in (0..whole).step_by(8) {
                        let (x, y) = (load::<T, L, 8>(l, at), load::<T, R, 8>(r, at));
                        self.sink.put_from(8, |i| T::of(O::apply(x[i].acc(), y[i].acc())));
                    }
                    self.sink.put_from(len - whole, |i| {
                        let (x, y) = (load::<T, L, 1>(l, whole + i), load::<T, R, 1>(r, whole + i));
                        T::of(O::apply(x[0].acc(), y[0].acc()))
                    });
                }
            }
        }
    }
}

/// The dots of one run of destinations.
struct Walk<'a, 'o, T: Elem> {
    job: &'a Job<'a, T>,
    run: Range<usize>,
    far: usize,
    out: &'a mut EdgeRows<'o, T>,
}

impl<T: Elem> Vectorised for Walk<'_, '_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let (job, far, near) = (self.job, self.far, 1 - self.far);
        let (csc, blocks) = (Adjacency::new(job.plan.relation().csc()), job.plan.blocks());
        let (sources, len) = (csc.indices, blocks.len);
        let (far_len, near_len) = (job.lens[far], job.lens[near]);
        let mut row = vec![T::of(T::Acc::ZERO); job.plan.out_width()];
        self.out.whole();
        for v in self.run {
            let y = &job.data[near][v * near_len..][..near_len];
            for p in csc.row(v) {
                if let Some(&u) = sources.get(p + AHEAD) {
                    prefetch_row(Cache::First, job.data[far], u as usize, far_len);
                }
                let x = &job.data[far][sources[p] as usize * far_len..][..far_len];
                // Not in the closure of `put`, which would be compiled for the baseline.
                for ((entry, &a), &b) in
                    row.iter_mut().zip(&blocks.starts[far]).zip(&blocks.starts[near])
                {
                    *entry = T::of(dot::<T, true, true>(
                        block::<T, true>(x, a, len),
                        block::<T, true>(y, b, len),
                        len,
                    ));
                }
                self.out.put(row.len(), |out| out.put(&row));
            }
        }
    }
}
