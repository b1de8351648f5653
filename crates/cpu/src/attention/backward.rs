//! Gradients of attention; the parent module describes the algorithm.
#![allow(clippy::needless_range_loop)]

use super::job::{
    AHEAD, BLOCK, FLAT, Job, Scores, Shape, accumulate, dot, exp_all, get, lanes, leaky, load,
};
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::{collect_rows, collect_rows_and_edges};
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::{by_edges, evenly};
use crate::parallel::scatter::{EdgeRows, Scattered};
use crate::prefetch::{FAR, from_memory};
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_structure::internal::{Cache, prefetch, prefetch_to};

/// The tensors that backward reads, and the gradients that it computes.
#[derive(Clone, Copy)]
pub(super) struct GradInputs<'a, T: Elem> {
    pub(super) grad: &'a [T],
    pub(super) out: &'a [T],
    pub(super) stats: &'a [T::Acc],
    /// Whether to compute the gradient of `z`.
    pub(super) dz: bool,
    /// Whether to compute the gradients of the scores.
    pub(super) ds: bool,
}

/// The gradients; those that are not requested are empty.
pub(super) struct Gradients<T: Elem> {
    pub(super) z: Vec<T>,
    /// Gradient of `a_src[u] + a_dst[v]` or of the score, per edge. It is not rounded, because the gradient of `a_dst` is
    /// summed from it.
    pub(super) scores: Vec<T::Acc>,
    pub(super) a_src: Vec<T>,
}

/// The gradients of `z`, of the scores and of `a_src`.
pub(super) fn backward<T: Elem>(
    job: Job<'_, T>,
    given: GradInputs<'_, T>,
    csr: Adjacency<'_>,
) -> Gradients<T> {
    let Shape { heads, dim, num_dst, .. } = job.shape;
    if heads == 0 {
        return Gradients { z: Vec::new(), scores: Vec::new(), a_src: Vec::new() };
    }
    let width = heads * dim;
    let meta = meta(&job, &given, num_dst);
    let meta = &meta[..];
    let runs = by_edges(
        csr.indptr,
        2 * width + 24 * heads + if job.draws.is_some() { 16 * heads } else { 0 },
    );
    let widths = [
        if given.dz { width } else { 0 },
        if given.ds && matches!(job.scores, Scores::Gat { .. }) { heads } else { 0 },
    ];
    let ds = Scattered::by_edge(csr, &runs, if given.ds { heads } else { 0 });
    let (z, a_src, scores) =
        collect_rows_and_edges(&runs, widths, ds, &|run, dz, da, ds| match (heads, dim) {
            (8, 8) => vectorised(Backward::<T, 8, 8> { job, given, csr, meta, run, dz, da, ds }),
            (1, 40) => vectorised(Backward::<T, 1, 40> { job, given, csr, meta, run, dz, da, ds }),
            _ => vectorised(Backward::<T, 0, 0> { job, given, csr, meta, run, dz, da, ds }),
        });
    Gradients { z, scores, a_src }
}

/// Per destination `[4, heads]`: `a_dst` (0 for scores per edge), max, 1 / Σ and T, in one row so that an edge reads
/// adjacent cache lines.
fn meta<T: Elem>(job: &Job<'_, T>, given: &GradInputs<'_, T>, num_dst: usize) -> Vec<T::Acc> {
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
            out.put_from(heads, |h| {
                if given.ds { dot(&g[h * dim..], &o[h * dim..], dim) } else { T::Acc::ZERO }
            });
        }
    })
}

struct Backward<'a, 's, 't, 'e, T: Elem, const H: usize, const D: usize> {
    job: Job<'a, T>,
    given: GradInputs<'a, T>,
    csr: Adjacency<'a>,
    meta: &'a [T::Acc],
    run: std::ops::Range<usize>,
    dz: &'a mut Sink<'s, T>,
    da: &'a mut Sink<'t, T>,
    ds: &'a mut EdgeRows<'e, T::Acc>,
}

impl<T: Elem, const H: usize, const D: usize> Vectorised for Backward<'_, '_, '_, '_, T, H, D> {
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
        let len = (BLOCK * heads).next_multiple_of(FLAT);
        // For the edges of a block: α, the derivative of the score, and m · α.
        let (mut alpha, mut slopes, mut w) = (vec![zero; len], vec![one; len], vec![zero; len]);
        ds.whole();
        let from_memory = from_memory(size_of_val(given.grad));
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
                            if from_memory
                                && let Some(&far) = csr.indices.get(start + i + FAR * AHEAD)
                            {
                                prefetch_to(Cache::Second, given.grad, far as usize * width, width);
                            }
                            if let Some(&ahead) = csr.indices.get(start + i + AHEAD) {
                                prefetch(given.grad, ahead as usize * width, width);
                            }
                            let row = &meta[v as usize * 4 * heads..][..4 * heads];
                            let (a, s) = (
                                &mut alpha[i * heads..][..heads],
                                &mut slopes[i * heads..][..heads],
                            );
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
                                prefetch(
                                    meta,
                                    csr.indices[start + i + BLOCK] as usize * 4 * heads,
                                    4 * heads,
                                );
                            }
                            if from_memory
                                && let Some(&far) = csr.indices.get(start + i + FAR * AHEAD)
                            {
                                prefetch_to(Cache::Second, given.grad, far as usize * width, width);
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
                if given.ds {
                    for i in 0..n {
                        ds.prefetch(csr.edge_id(start + i), 0, heads);
                    }
                }
                job.dropout(heads, &mut w[..used], n, |i| csr.edge_id(start + i));
                if given.ds {
                    let z = &job.z[u * width..][..width];
                    for (i, &v) in targets.iter().enumerate() {
                        let g = &given.grad[v as usize * width..][..width];
                        let total = &meta[v as usize * 4 * heads + 3 * heads..][..heads];
                        let (row, w, s) = (
                            &mut alpha[i * heads..][..heads],
                            &w[i * heads..][..heads],
                            &slopes[i * heads..][..heads],
                        );
                        // Computed into the buffer of the weights: code in the closure of `put` would be compiled for
                        // the baseline instruction set.
                        lanes!(heads, h, K => {
                            let mut d = [zero; K];
                            for k in 0..K {
                                d[k] = dot(&z[(h + k) * dim..], &g[(h + k) * dim..], dim);
                            }
                            let (a, w, s, total) =
                                (get::<T::Acc, K>(row, h), get::<T::Acc, K>(w, h), get::<T::Acc, K>(s, h), get::<T::Acc, K>(total, h));
                            let mut sum = get::<T::Acc, K>(&sums, h);
                            for k in 0..K {
                                // w = m α: m α <g, z> - α T.
                                d[k] = (w[k] * d[k] - a[k] * total[k]) * s[k];
                                sum[k] += d[k];
                            }
                            sums[h..h + K].copy_from_slice(&sum);
                            row[h..h + K].copy_from_slice(&d);
                        });
                        ds.put(heads, |to| to.put(row));
                        if given.dz {
                            accumulate::<T, H, D>(
                                (heads, dim),
                                &mut acc,
                                w,
                                given.grad,
                                &targets[i..i + 1],
                            );
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
pub(super) fn sum_in_edges<T: Elem>(ds: &[T::Acc], heads: usize, csc: Adjacency<'_>) -> Vec<T> {
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
    ds: &'a [T::Acc],
    heads: usize,
    csc: Adjacency<'a>,
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
                    let (mut sum, row) = (get::<T::Acc, K>(&acc, h), get::<T::Acc, K>(row, h));
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
