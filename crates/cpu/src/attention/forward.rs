//! Forward pass of attention; the parent module describes the algorithm.
#![allow(clippy::needless_range_loop)]

use super::job::{
    AHEAD, BLOCK, FLAT, Job, Scores, Shape, accumulate, exp_all, get, lanes, leaky, load,
};
use crate::math::softmax_shift::{inverse, shift};
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows2;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::by_edges;
use crate::prefetch::{FAR, from_memory};
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_structure::internal::{Cache, prefetch, prefetch_to};

/// Result `[num_dst, heads, dim]`, and `[num_dst, 2, heads]`: max of the scores and 1 / Σ exp(score - max),
/// both 0 without edges and where all scores are -inf.
pub(super) fn forward<T: Elem>(job: Job<'_, T>, csc: Adjacency<'_>) -> (Vec<T>, Vec<T::Acc>) {
    let Shape { heads, dim, .. } = job.shape;
    if heads == 0 {
        return (Vec::new(), Vec::new());
    }
    let width = heads * dim;
    let runs =
        by_edges(csc.indptr, width + 16 * heads + if job.draws.is_some() { 16 * heads } else { 0 });
    collect_rows2(&runs, [width, 2 * heads], &|run, out, stats| match (heads, dim) {
        (8, 8) => vectorised(Forward::<T, 8, 8> { job, csc, run, out, stats }),
        (1, 40) => vectorised(Forward::<T, 1, 40> { job, csc, run, out, stats }),
        _ => vectorised(Forward::<T, 0, 0> { job, csc, run, out, stats }),
    })
}

struct Forward<'a, 's, 't, T: Elem, const H: usize, const D: usize> {
    job: Job<'a, T>,
    csc: Adjacency<'a>,
    run: std::ops::Range<usize>,
    out: &'a mut Sink<'s, T>,
    stats: &'a mut Sink<'t, T::Acc>,
}

impl<T: Elem, const H: usize, const D: usize> Vectorised for Forward<'_, '_, '_, T, H, D> {
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
        let from_memory = from_memory(size_of_val(job.z));
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
                for k in 0..K {
                    top[k] = shift(top[k]);
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
                    total[k] = inverse(total[k]);
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
                    if from_memory && let Some(&far) = csc.indices.get(p + FAR * AHEAD) {
                        prefetch_to(Cache::Second, job.z, far as usize * width, width);
                    }
                    if let Some(&ahead) = csc.indices.get(p + AHEAD) {
                        prefetch(job.z, ahead as usize * width, width);
                    }
                }
                accumulate::<T, H, D>(
                    (heads, dim),
                    &mut acc,
                    &w[from * heads..],
                    job.z,
                    &csc.indices[start + from..start + to],
                );
            }
            out.put_acc(&acc);
            stats.put(max);
            stats.put(sum);
        }
    }
}
