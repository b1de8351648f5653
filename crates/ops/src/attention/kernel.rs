//! Attention on slices.
//!
//! ```text
//! forward, for every destination v (rows of CSC):
//!   s[e]  = score of in-edge e                 all heads, in a buffer of one row's in-edges
//!   α[e]  = exp(s[e] - max s) / Σ exp(s - max s)
//!   out[v] = Σ m[e] α[e] z[u]                  m: dropout, 0 or 1 / (1 - p)
//!   kept: max and 1 / Σ
//! backward, T[v] = <grad[v], out[v]> first, then for every source u (rows of CSR):
//!   α[e] from the scores again, with max and 1 / Σ of v
//!   dz[u] = Σ m[e] α[e] grad[v]
//!   ds[e] = α[e] (m[e] <grad[v], z[u]> - T[v]) · (derivative of the score)
//!   da_src[u] = Σ ds[e]
//! then da_dst[v] = Σ ds[e] over rows of CSC
//! ```
//! Every entry has one writer and every sum runs in ascending edge id. Edges go through in blocks, so that
//! the exponentials of a block are one loop over a flat buffer, and rows of neighbours are asked for a
//! block ahead.

use super::plan::Shape;
use crate::kernel::{
    Acc, Elem, Exp, LANES, Scatter, Sink, Vectorised, by_edges, collect_rows, collect_rows2, evenly, philox_lanes, prefetch, scatter_rows,
    vectorised,
};

/// One compressed layout, as plain slices.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) indptr: &'a [u32],
    pub(crate) indices: &'a [u32],
    pub(crate) edge_ids: Option<&'a [u32]>,
}

impl Rows<'_> {
    #[inline(always)]
    fn edge_id(&self, p: usize) -> usize {
        match self.edge_ids {
            Some(ids) => ids[p] as usize,
            None => p,
        }
    }
    #[inline(always)]
    fn row(&self, r: usize) -> std::ops::Range<usize> {
        self.indptr[r] as usize..self.indptr[r + 1] as usize
    }
}

/// Which edges dropout keeps.
#[derive(Clone, Copy)]
pub(crate) struct Draws<'a> {
    pub(crate) key: [u32; 2],
    /// A word keeps its entry iff it is at least this.
    pub(crate) threshold: u64,
    pub(crate) scale: f64,
    /// Original id of each edge.
    pub(crate) ids: Option<&'a [u64]>,
}

/// Where scores come from.
#[derive(Clone, Copy)]
pub(crate) enum Scores<'a, T: Elem> {
    /// `leaky_relu(a_src[u] + a_dst[v])`, rows of one number per head.
    Gat { a_src: &'a [T], a_dst: &'a [T], slope: f64 },
    /// A row of one number per head for every edge.
    Edges(&'a [T]),
}

#[derive(Clone, Copy)]
pub(crate) struct Job<'a, T: Elem> {
    pub(crate) shape: Shape,
    pub(crate) scores: Scores<'a, T>,
    pub(crate) z: &'a [T],
    pub(crate) draws: Option<Draws<'a>>,
}

/// Edges of a block. The blocks of a row start at its first edge.
const BLOCK: usize = 32;
/// Edges ahead of which the rows of neighbours are asked for.
const AHEAD: usize = 16;
/// Numbers of the flat buffers that one loop over exponentials takes.
const FLAT: usize = 16;

/// Walks over heads eight at a time, then one by one; `$k` is the number at hand, a constant.
///
/// Bodies load what they read into arrays and store once: of slices that live in local buffers the
/// compiler does not know that they do not overlap, and a store between loads would undo the vector code.
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

/// The `K` entries from `at`, as numbers to calculate with.
#[inline(always)]
fn load<T: Elem, const K: usize>(x: &[T], at: usize) -> [T::Acc; K] {
    let x = &x[at..at + K];
    let mut out = [T::Acc::ZERO; K];
    for k in 0..K {
        out[k] = x[k].acc();
    }
    out
}

/// As [`load`], of what are such numbers already.
#[inline(always)]
fn get<A: Acc, const K: usize>(x: &[A], at: usize) -> [A; K] {
    let mut out = [A::ZERO; K];
    out.copy_from_slice(&x[at..at + K]);
    out
}

#[inline(always)]
fn leaky<A: Acc>(x: A, slope: A) -> A {
    if x > A::ZERO { x } else { x * slope }
}

/// `x = e^x`, a whole number of times [`FLAT`].
#[inline(always)]
fn exp_all<A: Acc + Exp>(x: &mut [A]) {
    for part in x.chunks_exact_mut(FLAT) {
        for v in part {
            *v = v.exp_();
        }
    }
}

impl<T: Elem> Job<'_, T>
where
    T::Acc: Exp,
{
    /// Multiplies `weights` (heads of edge `e(i)` from `i · heads`) by 0 or the scale.
    #[inline(always)]
    fn dropout(&self, heads: usize, weights: &mut [T::Acc], n: usize, id: impl Fn(usize) -> usize) {
        let Some(draws) = self.draws else { return };
        let scale = T::Acc::of_f64(draws.scale);
        let blocks = heads.div_ceil(4);
        let total = n * blocks;
        let mut from = 0;
        // Edge and block of the next lane.
        let (mut i, mut b) = (0, 0);
        while from < total {
            let mut c = [[0u32; LANES]; 4];
            let lanes = LANES.min(total - from);
            let (first, first_block) = (i, b);
            for lane in 0..lanes {
                let id = id(i);
                let original = draws.ids.map_or(id as u64, |ids| ids[id]);
                (c[0][lane], c[1][lane], c[2][lane]) = (original as u32, (original >> 32) as u32, b as u32);
                b += 1;
                if b == blocks {
                    (i, b) = (i + 1, 0);
                }
            }
            let words = philox_lanes(c, draws.key);
            let (mut i, mut b) = (first, first_block);
            for lane in 0..lanes {
                let heads_here = (heads - 4 * b).min(4);
                let at = i * heads + 4 * b;
                if heads_here == 4 {
                    let to = &mut weights[at..at + 4];
                    for k in 0..4 {
                        to[k] = to[k] * if u64::from(words[k][lane]) >= draws.threshold { scale } else { T::Acc::ZERO };
                    }
                } else {
                    for k in 0..heads_here {
                        weights[at + k] = weights[at + k] * if u64::from(words[k][lane]) >= draws.threshold { scale } else { T::Acc::ZERO };
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

/// `acc += Σ over edges of w[e, h] · x[row(e), h, d]`, in the order of `rows`.
#[inline(always)]
fn accumulate<T: Elem, const H: usize, const D: usize>(size: (usize, usize), acc: &mut [T::Acc], w: &[T::Acc], x: &[T], rows: &[u32]) {
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

/// `K` edges at a time touch `acc` once and keep `K` rows in flight.
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
    let mut from = [0; K];
    for i in 0..K {
        from[i] = rows[i] as usize * width;
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
                let x = load::<T, 8>(x, from[i] + at);
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
                sum += factor[i] * x[from[i] + at].acc();
            }
            acc[at] = sum;
            at += 1;
        }
    }
}

/// `<a, b>` in eight partial sums.
#[inline(always)]
fn dot<T: Elem>(a: &[T], b: &[T], dim: usize) -> T::Acc {
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

/// Result `[num_dst, heads, dim]`, and `[num_dst, 2, heads]`: max of the scores and 1 / Σ exp(score - max).
pub(crate) fn forward<T: Elem>(job: Job<'_, T>, csc: Rows<'_>) -> (Vec<T>, Vec<T::Acc>)
where
    T::Acc: Exp,
{
    let Shape { heads, dim, .. } = job.shape;
    if heads == 0 {
        return (Vec::new(), Vec::new());
    }
    let width = heads * dim;
    let runs = by_edges(csc.indptr, width + 16 * heads + if job.draws.is_some() { 16 * heads } else { 0 });
    collect_rows2(&runs, [width, 2 * heads], &|run, out, stats| match (heads, dim) {
        (8, 8) => vectorised(Forward::<T, 8, 8> { job, csc, run, out, stats }),
        (1, 40) => vectorised(Forward::<T, 1, 40> { job, csc, run, out, stats }),
        _ => vectorised(Forward::<T, 0, 0> { job, csc, run, out, stats }),
    })
}

struct Forward<'a, 's, 't, T: Elem, const H: usize, const D: usize> {
    job: Job<'a, T>,
    csc: Rows<'a>,
    run: std::ops::Range<usize>,
    out: &'a mut Sink<'s, T>,
    stats: &'a mut Sink<'t, T::Acc>,
}

impl<T: Elem, const H: usize, const D: usize> Vectorised for Forward<'_, '_, '_, T, H, D>
where
    T::Acc: Exp,
{
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { job, csc, run, out, stats } = self;
        let (heads, dim) = if H > 0 { (H, D) } else { (job.shape.heads, job.shape.dim) };
        let width = heads * dim;
        let zero = T::Acc::ZERO;
        let mut acc = vec![zero; width];
        let (mut max, mut sum) = (vec![zero; heads], vec![zero; heads]);
        let mut w: Vec<T::Acc> = Vec::new();
        for v in run {
            let edges = csc.row(v);
            if edges.is_empty() {
                out.fill(width, T::zeroed());
                stats.fill(2 * heads, zero);
                continue;
            }
            let (start, n) = (edges.start, edges.len());
            let used = n * heads;
            w.clear();
            w.resize(used.next_multiple_of(FLAT), zero);
            let (max, sum) = (&mut max[..heads], &mut sum[..heads]);
            match job.scores {
                Scores::Gat { a_src, a_dst, slope } => {
                    let slope = T::Acc::of_f64(slope);
                    let base = &a_dst[v * heads..][..heads];
                    for (i, w) in w[..used].chunks_exact_mut(heads).enumerate() {
                        let p = start + i;
                        if let Some(&ahead) = csc.indices.get(p + 2 * BLOCK) {
                            prefetch(a_src, ahead as usize * heads, heads);
                        }
                        let own = &a_src[csc.indices[p] as usize * heads..][..heads];
                        lanes!(heads, h, K => {
                            let (own, base) = (load::<T, K>(own, h), load::<T, K>(base, h));
                            let mut s = [zero; K];
                            for k in 0..K {
                                s[k] = leaky(own[k] + base[k], slope);
                            }
                            w[h..h + K].copy_from_slice(&s);
                        });
                    }
                }
                Scores::Edges(logits) => {
                    for (i, w) in w[..used].chunks_exact_mut(heads).enumerate() {
                        let p = start + i;
                        if p + BLOCK < csc.indices.len() {
                            prefetch(logits, csc.edge_id(p + BLOCK) * heads, heads);
                        }
                        let own = &logits[csc.edge_id(p) * heads..][..heads];
                        lanes!(heads, h, K => {
                            w[h..h + K].copy_from_slice(&load::<T, K>(own, h));
                        });
                    }
                }
            }
            lanes!(heads, h, K => {
                let mut top = [T::Acc::of_f64(f64::NEG_INFINITY); K];
                for i in 0..n {
                    let s = get::<T::Acc, K>(&w, i * heads + h);
                    for k in 0..K {
                        top[k] = if s[k] > top[k] { s[k] } else { top[k] };
                    }
                }
                for i in 0..n {
                    let mut s = get::<T::Acc, K>(&w, i * heads + h);
                    for k in 0..K {
                        s[k] = s[k] - top[k];
                    }
                    w[i * heads + h..][..K].copy_from_slice(&s);
                }
                max[h..h + K].copy_from_slice(&top);
            });
            exp_all(&mut w);
            lanes!(heads, h, K => {
                let mut total = [zero; K];
                for i in 0..n {
                    let e = get::<T::Acc, K>(&w, i * heads + h);
                    for k in 0..K {
                        total[k] += e[k];
                    }
                }
                for k in 0..K {
                    total[k] = T::Acc::ONE / total[k];
                }
                for i in 0..n {
                    let mut e = get::<T::Acc, K>(&w, i * heads + h);
                    for k in 0..K {
                        e[k] = e[k] * total[k];
                    }
                    w[i * heads + h..][..K].copy_from_slice(&e);
                }
                sum[h..h + K].copy_from_slice(&total);
            });
            job.dropout(heads, &mut w[..used], n, |i| csc.edge_id(start + i));
            acc.fill(zero);
            for from in (0..n).step_by(4) {
                let to = (from + 4).min(n);
                for p in start + from..start + to {
                    if let Some(&ahead) = csc.indices.get(p + AHEAD) {
                        prefetch(job.z, ahead as usize * width, width);
                    }
                }
                accumulate::<T, H, D>((heads, dim), &mut acc, &w[from * heads..], job.z, &csc.indices[start + from..start + to]);
            }
            out.put_acc(&acc);
            stats.put(max);
            stats.put(sum);
        }
    }
}

/// What backward reads, and which results it must give.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a, T: Elem> {
    pub(crate) grad: &'a [T],
    pub(crate) out: &'a [T],
    pub(crate) stats: &'a [T::Acc],
    /// Whether the gradient of `z` is asked for.
    pub(crate) dz: bool,
    /// Whether a gradient of the scores is asked for.
    pub(crate) ds: bool,
}

/// Gradients; those not asked for are empty.
pub(crate) struct Gradients<T: Elem> {
    pub(crate) z: Vec<T>,
    /// Of the sum `a_src[u] + a_dst[v]` or of the logit, per edge.
    pub(crate) scores: Vec<T>,
    pub(crate) a_src: Vec<T>,
}

/// Gradients of `z` and of the scores.
pub(crate) fn backward<T: Elem>(job: Job<'_, T>, given: Given<'_, T>, csr: Rows<'_>, num_edges: usize) -> Gradients<T>
where
    T::Acc: Exp,
{
    let Shape { heads, dim, num_dst, .. } = job.shape;
    if heads == 0 {
        return Gradients { z: Vec::new(), scores: Vec::new(), a_src: Vec::new() };
    }
    let width = heads * dim;
    let meta = meta(&job, &given, num_dst);
    let meta = &meta[..];
    let runs = by_edges(csr.indptr, 2 * width + 24 * heads + if job.draws.is_some() { 16 * heads } else { 0 });
    let widths = [if given.dz { width } else { 0 }, if given.ds && matches!(job.scores, Scores::Gat { .. }) { heads } else { 0 }];
    let mut both = (Vec::new(), Vec::new());
    let scores = scatter_rows(if given.ds { num_edges } else { 0 }, heads, |ds| {
        both = collect_rows2(&runs, widths, &|run, dz, da| match (heads, dim) {
            (8, 8) => vectorised(Backward::<T, 8, 8> { job, given, csr, meta, run, dz, da, ds }),
            (1, 40) => vectorised(Backward::<T, 1, 40> { job, given, csr, meta, run, dz, da, ds }),
            _ => vectorised(Backward::<T, 0, 0> { job, given, csr, meta, run, dz, da, ds }),
        });
    });
    Gradients { z: both.0, scores, a_src: both.1 }
}

/// Per destination, `[4, heads]`: `a_dst` (0 for given logits), max, 1 / Σ, and T.
fn meta<T: Elem>(job: &Job<'_, T>, given: &Given<'_, T>, num_dst: usize) -> Vec<T::Acc> {
    let Shape { heads, dim, .. } = job.shape;
    let width = heads * dim;
    collect_rows(&evenly(num_dst, 2 * width), 4 * heads, &|run, out| {
        for v in run {
            match job.scores {
                Scores::Gat { a_dst, .. } => out.put_from(heads, |h| a_dst[v * heads + h].acc()),
                Scores::Edges(_) => out.fill(heads, T::Acc::ZERO),
            }
            out.put(&given.stats[v * 2 * heads..][..2 * heads]);
            let (g, o) = (&given.grad[v * width..][..width], &given.out[v * width..][..width]);
            out.put_from(heads, |h| if given.ds { dot(&g[h * dim..], &o[h * dim..], dim) } else { T::Acc::ZERO });
        }
    })
}

struct Backward<'a, 's, 't, T: Elem, const H: usize, const D: usize> {
    job: Job<'a, T>,
    given: Given<'a, T>,
    csr: Rows<'a>,
    meta: &'a [T::Acc],
    run: std::ops::Range<usize>,
    dz: &'a mut Sink<'s, T>,
    da: &'a mut Sink<'t, T>,
    ds: &'a Scatter<'a, T>,
}

impl<T: Elem, const H: usize, const D: usize> Vectorised for Backward<'_, '_, '_, T, H, D>
where
    T::Acc: Exp,
{
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { job, given, csr, meta, run, dz, da, ds } = self;
        let (heads, dim) = if H > 0 { (H, D) } else { (job.shape.heads, job.shape.dim) };
        let width = heads * dim;
        let zero = T::Acc::ZERO;
        let one = T::Acc::ONE;
        let mut acc = vec![zero; width];
        let mut sums = vec![zero; heads];
        let room = (BLOCK * heads).next_multiple_of(FLAT);
        // Of the edges of a block: α, then the derivative of the score, then m · α.
        let (mut alpha, mut slopes, mut w) = (vec![zero; room], vec![one; room], vec![zero; room]);
        for u in run {
            acc.fill(zero);
            sums.fill(zero);
            let edges = csr.row(u);
            let mut start = edges.start;
            while start < edges.end {
                let n = (edges.end - start).min(BLOCK);
                let targets = &csr.indices[start..start + n];
                let used = n * heads;
                match job.scores {
                    Scores::Gat { a_src, slope, .. } => {
                        let slope = T::Acc::of_f64(slope);
                        let own = &a_src[u * heads..][..heads];
                        for (i, &v) in targets.iter().enumerate() {
                            if let Some(&ahead) = csr.indices.get(start + i + BLOCK) {
                                prefetch(meta, ahead as usize * 4 * heads, 4 * heads);
                            }
                            if let Some(&ahead) = csr.indices.get(start + i + AHEAD) {
                                prefetch(given.grad, ahead as usize * width, width);
                            }
                            let row = &meta[v as usize * 4 * heads..][..4 * heads];
                            let (a, s) = (&mut alpha[i * heads..][..heads], &mut slopes[i * heads..][..heads]);
                            lanes!(heads, h, K => {
                                let (own, dst, max) = (load::<T, K>(own, h), get::<T::Acc, K>(row, h), get::<T::Acc, K>(row, heads + h));
                                let (mut t, mut derivative) = ([zero; K], [zero; K]);
                                for k in 0..K {
                                    let x = own[k] + dst[k];
                                    t[k] = leaky(x, slope) - max[k];
                                    derivative[k] = if x > zero { one } else { slope };
                                }
                                a[h..h + K].copy_from_slice(&t);
                                s[h..h + K].copy_from_slice(&derivative);
                            });
                        }
                    }
                    Scores::Edges(logits) => {
                        for (i, &v) in targets.iter().enumerate() {
                            if start + i + BLOCK < csr.indices.len() {
                                prefetch(logits, csr.edge_id(start + i + BLOCK) * heads, heads);
                                prefetch(meta, csr.indices[start + i + BLOCK] as usize * 4 * heads, 4 * heads);
                            }
                            if let Some(&ahead) = csr.indices.get(start + i + AHEAD) {
                                prefetch(given.grad, ahead as usize * width, width);
                            }
                            let row = &meta[v as usize * 4 * heads..][..4 * heads];
                            let own = &logits[csr.edge_id(start + i) * heads..][..heads];
                            let a = &mut alpha[i * heads..][..heads];
                            lanes!(heads, h, K => {
                                let (mut t, max) = (load::<T, K>(own, h), get::<T::Acc, K>(row, heads + h));
                                for k in 0..K {
                                    t[k] = t[k] - max[k];
                                }
                                a[h..h + K].copy_from_slice(&t);
                            });
                        }
                    }
                }
                exp_all(&mut alpha[..used.next_multiple_of(FLAT)]);
                for (i, &v) in targets.iter().enumerate() {
                    let inverse = &meta[v as usize * 4 * heads + 2 * heads..][..heads];
                    let (a, w) = (&mut alpha[i * heads..][..heads], &mut w[i * heads..][..heads]);
                    lanes!(heads, h, K => {
                        let (mut e, inverse) = (get::<T::Acc, K>(a, h), get::<T::Acc, K>(inverse, h));
                        for k in 0..K {
                            e[k] = e[k] * inverse[k];
                        }
                        a[h..h + K].copy_from_slice(&e);
                        w[h..h + K].copy_from_slice(&e);
                    });
                }
                job.dropout(heads, &mut w[..used], n, |i| csr.edge_id(start + i));
                if given.ds {
                    let z = &job.z[u * width..][..width];
                    for (i, &v) in targets.iter().enumerate() {
                        let g = &given.grad[v as usize * width..][..width];
                        let total = &meta[v as usize * 4 * heads + 3 * heads..][..heads];
                        let (a, w, s) = (&alpha[i * heads..][..heads], &w[i * heads..][..heads], &slopes[i * heads..][..heads]);
                        // SAFETY: the ids of the edges of a layout are distinct, every run has its own edges,
                        // and the row before is no longer alive.
                        let to = unsafe { ds.row_mut(csr.edge_id(start + i)) };
                        lanes!(heads, h, K => {
                            let mut d = [zero; K];
                            for k in 0..K {
                                d[k] = dot(&z[(h + k) * dim..], &g[(h + k) * dim..], dim);
                            }
                            let (a, w, s, total) =
                                (get::<T::Acc, K>(a, h), get::<T::Acc, K>(w, h), get::<T::Acc, K>(s, h), get::<T::Acc, K>(total, h));
                            let mut sum = get::<T::Acc, K>(&sums, h);
                            let mut rounded = [T::zeroed(); K];
                            for k in 0..K {
                                // w = m α: m α <g, z> - α T.
                                d[k] = (w[k] * d[k] - a[k] * total[k]) * s[k];
                                sum[k] += d[k];
                                rounded[k] = T::of(d[k]);
                            }
                            sums[h..h + K].copy_from_slice(&sum);
                            to[h..h + K].copy_from_slice(&rounded);
                        });
                        if given.dz {
                            accumulate::<T, H, D>((heads, dim), &mut acc, w, given.grad, &targets[i..i + 1]);
                        }
                    }
                } else if given.dz {
                    accumulate::<T, H, D>((heads, dim), &mut acc, &w, given.grad, targets);
                }
                start += n;
            }
            if given.dz {
                dz.put_acc(&acc);
            }
            if given.ds && matches!(job.scores, Scores::Gat { .. }) {
                da.put_acc(&sums);
            }
        }
    }
}

/// `out[v] = Σ ds[e]` over in-edges.
pub(crate) fn sum_in_edges<T: Elem>(ds: &[T], heads: usize, csc: Rows<'_>) -> Vec<T> {
    let runs = by_edges(csc.indptr, 2 * heads);
    collect_rows(&runs, heads, &|run, out| {
        if heads == 8 {
            vectorised(InEdges::<T, 8> { ds, heads, csc, run, out });
        } else {
            vectorised(InEdges::<T, 0> { ds, heads, csc, run, out });
        }
    })
}

struct InEdges<'a, 's, T: Elem, const H: usize> {
    ds: &'a [T],
    heads: usize,
    csc: Rows<'a>,
    run: std::ops::Range<usize>,
    out: &'a mut Sink<'s, T>,
}

impl<T: Elem, const H: usize> Vectorised for InEdges<'_, '_, T, H> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Self { ds, heads, csc, run, out } = self;
        let heads = if H > 0 { H } else { heads };
        let mut acc = vec![T::Acc::ZERO; heads];
        for v in run {
            acc.fill(T::Acc::ZERO);
            for p in csc.row(v) {
                if p + 32 < csc.indices.len() {
                    prefetch(ds, csc.edge_id(p + 32) * heads, heads);
                }
                let row = &ds[csc.edge_id(p) * heads..][..heads];
                lanes!(heads, h, K => {
                    let (mut sum, row) = (get::<T::Acc, K>(&acc, h), load::<T, K>(row, h));
                    for k in 0..K {
                        sum[k] += row[k];
                    }
                    acc[h..h + K].copy_from_slice(&sum);
                });
            }
            out.put_acc(&acc);
        }
    }
}
