//! The operands of an attention kernel, and the loops that its passes share.
//!
//! Loops over lanes are written with indices: those are what the compiler turns into vector code.
#![allow(clippy::needless_range_loop)]

use burn_gnn_plan::{AttentionPlan, AttentionScoring, DropoutPlan};

use crate::math::philox::{LANES, philox_lanes};
use crate::number::{Acc, Elem, Exp};

/// The source of the scores.
#[derive(Clone, Copy)]
pub(super) enum Scores<'a, T: Elem> {
    /// `leaky_relu(a_src[u] + a_dst[v])`; both have one entry per node and head.
    Gat { a_src: &'a [T], a_dst: &'a [T], slope: f64 },
    /// One score per edge and head.
    Edges(&'a [T]),
}

/// Sizes.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) num_dst: usize,
    pub(super) heads: usize,
    pub(super) dim: usize,
}

/// A plan and its operands.
#[derive(Clone, Copy)]
pub(super) struct Job<'a, T: Elem> {
    pub(super) shape: Shape,
    pub(super) scores: Scores<'a, T>,
    pub(super) z: &'a [T],
    pub(super) draws: Option<&'a DropoutPlan>,
}

impl<'a, T: Elem> Job<'a, T> {
    pub(super) fn new(
        plan: &'a AttentionPlan,
        z: &'a [T],
        first: &'a [T],
        second: Option<&'a [T]>,
    ) -> Self {
        let scores = match (plan.scoring(), second) {
            (AttentionScoring::Nodes { slope }, Some(a_dst)) => {
                Scores::Gat { a_src: first, a_dst, slope }
            }
            _ => Scores::Edges(first),
        };
        let shape =
            Shape { num_dst: plan.relation().num_dst(), heads: plan.heads(), dim: plan.dim() };
        Self { shape, scores, z, draws: plan.dropout() }
    }
}

/// Number of edges in a block. The blocks of a row start at its first edge.
pub(super) const BLOCK: usize = 32;
/// How many edges ahead the rows of neighbours are prefetched.
pub(super) const AHEAD: usize = 16;
/// Entries per vectorised loop over exponentials; flat buffers are padded to a multiple of it.
pub(super) const FLAT: usize = 16;

/// Loops over heads in steps of 8, then of 1; `$k` is the step, a constant.
///
/// Bodies first load all inputs into arrays and then store once. The compiler cannot prove that slices of local buffers
/// do not overlap, so a store between loads would prevent vectorisation.
macro_rules! lanes {
    ($heads:expr, $h:ident, $k:ident => $body:block) => {{
        let mut $h = 0;
        while $h + 8 <= $heads {
            const $k: usize = 8;
            $body
            $h += 8;
        }
        while $h < $heads {
            const $k: usize = 1;
            $body
            $h += 1;
        }
    }};
}

pub(super) use lanes;

/// Loads `K` entries from `at`, widened to the accumulator type.
#[inline(always)]
pub(super) fn load<T: Elem, const K: usize>(x: &[T], at: usize) -> [T::Acc; K] {
    let x = &x[at..at + K];
    let mut out = [T::Acc::ZERO; K];
    for k in 0..K {
        out[k] = x[k].acc();
    }
    out
}

/// Loads `K` accumulators from `at`.
#[inline(always)]
pub(super) fn get<A: Acc, const K: usize>(x: &[A], at: usize) -> [A; K] {
    let mut out = [A::ZERO; K];
    out.copy_from_slice(&x[at..at + K]);
    out
}

#[inline(always)]
pub(super) fn leaky<A: Acc>(x: A, slope: A) -> A {
    if x > A::ZERO { x } else { x * slope }
}

/// `x = e^x` in place. The length of `x` is a multiple of [`FLAT`].
#[inline(always)]
pub(super) fn exp_all<A: Acc + Exp>(x: &mut [A]) {
    for part in x.chunks_exact_mut(FLAT) {
        for v in part {
            *v = v.exp_();
        }
    }
}

impl<T: Elem> Job<'_, T> {
    /// Applies dropout: multiplies the weights of `n` edges (`heads` entries each) by 0 or `1 / (1 - p)`. Edge `i` has the
    /// id `id(i)`.
    #[inline(always)]
    pub(super) fn dropout(
        &self,
        heads: usize,
        weights: &mut [T::Acc],
        n: usize,
        id: impl Fn(usize) -> usize,
    ) {
        let Some(draws) = self.draws else { return };
        let (key, threshold, scale) =
            (draws.stream().key(), draws.threshold(), T::Acc::of_f64(draws.scale()));
        let blocks = heads.div_ceil(4);
        let total = n * blocks;
        let mut from = 0;
        // Edge, and block of four heads, of the next lane.
        let (mut i, mut b) = (0, 0);
        while from < total {
            let mut c = [[0u32; LANES]; 4];
            let lanes = LANES.min(total - from);
            let (first, first_block) = (i, b);
            for lane in 0..lanes {
                let id = id(i);
                let original = draws.id(id);
                (c[0][lane], c[1][lane], c[2][lane]) =
                    (original as u32, (original >> 32) as u32, b as u32);
                b += 1;
                if b == blocks {
                    (i, b) = (i + 1, 0);
                }
            }
            let words = philox_lanes(c, key);
            let (mut i, mut b) = (first, first_block);
            for lane in 0..lanes {
                let heads_here = (heads - 4 * b).min(4);
                let at = i * heads + 4 * b;
                if heads_here == 4 {
                    let to = &mut weights[at..at + 4];
                    for k in 0..4 {
                        to[k] = to[k]
                            * if u64::from(words[k][lane]) >= threshold {
                                scale
                            } else {
                                T::Acc::ZERO
                            };
                    }
                } else {
                    for k in 0..heads_here {
                        weights[at + k] = weights[at + k]
                            * if u64::from(words[k][lane]) >= threshold {
                                scale
                            } else {
                                T::Acc::ZERO
                            };
                    }
                }
                b += 1;
                if b == blocks {
                    (i, b) = (i + 1, 0);
                }
            }
            from += lanes;
        }
    }
}

/// `acc[h, d] += Σ over edges e of w[e, h] · x[rows[e], h, d]`, in the order of `rows`.
#[inline(always)]
pub(super) fn accumulate<T: Elem, const H: usize, const D: usize>(
    size: (usize, usize),
    acc: &mut [T::Acc],
    w: &[T::Acc],
    x: &[T],
    rows: &[u32],
) {
    let heads = if H > 0 { H } else { size.0 };
    let (mut fours, mut w) = (rows.chunks_exact(4), w);
    for rows in &mut fours {
        add_rows::<T, H, D, 4>(size, acc, w, x, rows);
        w = &w[4 * heads..];
    }
    for rows in fours.remainder().chunks_exact(1) {
        add_rows::<T, H, D, 1>(size, acc, w, x, rows);
        w = &w[heads..];
    }
}

/// Adds `K` edges: `acc` is loaded and stored once for all of them, and `K` rows are in flight.
#[inline(always)]
fn add_rows<T: Elem, const H: usize, const D: usize, const K: usize>(
    (heads, dim): (usize, usize),
    acc: &mut [T::Acc],
    w: &[T::Acc],
    x: &[T],
    rows: &[u32],
) {
    let (heads, dim) = if H > 0 { (H, D) } else { (heads, dim) };
    let width = heads * dim;
    let mut sources: [&[T]; K] = [&[]; K];
    for i in 0..K {
        sources[i] = &x[rows[i] as usize * width..][..width];
    }
    let acc = &mut acc[..width];
    let w = &w[..K * heads];
    for h in 0..heads {
        let mut factor = [T::Acc::ZERO; K];
        for i in 0..K {
            factor[i] = w[i * heads + h];
        }
        let mut at = h * dim;
        let end = at + dim;
        while at + 8 <= end {
            let mut sums = get::<T::Acc, 8>(acc, at);
            for i in 0..K {
                let x = load::<T, 8>(sources[i], at);
                for k in 0..8 {
                    sums[k] += factor[i] * x[k];
                }
            }
            acc[at..at + 8].copy_from_slice(&sums);
            at += 8;
        }
        while at < end {
            let mut sum = acc[at];
            for i in 0..K {
                sum += factor[i] * sources[i][at].acc();
            }
            acc[at] = sum;
            at += 1;
        }
    }
}

/// The dot product `<a, b>`, in eight partial sums.
#[inline(always)]
pub(super) fn dot<T: Elem>(a: &[T], b: &[T], dim: usize) -> T::Acc {
    let (a, b) = (&a[..dim], &b[..dim]);
    let mut lanes = [T::Acc::ZERO; 8];
    let mut at = 0;
    while at + 8 <= dim {
        let (x, y) = (load::<T, 8>(a, at), load::<T, 8>(b, at));
        for k in 0..8 {
            lanes[k] += x[k] * y[k];
        }
        at += 8;
    }
    let mut four = [T::Acc::ZERO; 4];
    for k in 0..4 {
        four[k] = lanes[k] + lanes[k + 4];
    }
    let mut sum = (four[0] + four[2]) + (four[1] + four[3]);
    while at < dim {
        sum += a[at].acc() * b[at].acc();
        at += 1;
    }
    sum
}
