//! Products of the rows of a side with the weights of their relations, a row per pair: what
//! multiply-then-aggregate makes before it gathers, and the gradient of the factors of edges.

use crate::kernel::{Vectorised, collect_rows, prefetch, scatter_rows, vectorised};
use crate::relational::side::Side;
use crate::typed::dense::{LANES, Panels, product};
use crate::typed::real::Real;

/// Pairs multiplied at a time.
const TILE: usize = 32;
/// Edges between asking for a row and using it.
const AHEAD: usize = 16;

/// Rows `blocks · k` wide times block-diagonal weights, `[k, n]` each.
pub(crate) struct Products<'a, A> {
    pub(crate) side: &'a Side,
    /// One row per row of the side.
    pub(crate) own: &'a [A],
    pub(crate) panels: &'a Panels<A>,
    pub(crate) blocks: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

impl<A: Real> Products<'_, A> {
    fn stride(&self) -> usize {
        self.blocks * self.panels.stride
    }
    fn width(&self) -> usize {
        self.blocks * self.n
    }
    fn runs(&self) -> Vec<std::ops::Range<usize>> {
        let work = self.side.num_pairs().saturating_mul(self.stride().saturating_mul(self.k) / LANES + self.width());
        self.side.runs((work >> 18).clamp(1, 8 * rayon::current_num_threads()))
    }
    fn first_pair(&self, block: usize) -> usize {
        self.side.groups[self.side.block_groups[block] as usize].first_pair as usize
    }

    /// One row per pair, `[pairs, blocks · n]`.
    pub(crate) fn per_pair(&self) -> Vec<A> {
        let runs = self.runs();
        let rows: Vec<_> = runs.iter().map(|r| self.first_pair(r.start)..self.first_pair(r.end)).collect();
        let pairs_to_run = |pair: usize| rows.partition_point(|r| r.end <= pair);
        collect_rows(&rows, self.width(), &|run, sink| {
            if run.is_empty() {
                return;
            }
            let mut tile = Vec::new();
            for block in runs[pairs_to_run(run.start)].clone() {
                for (relation, pairs) in self.side.groups_of(block) {
                    for from in pairs.clone().step_by(TILE) {
                        let count = TILE.min(pairs.end - from);
                        self.tile(relation, from, count, &mut tile);
                        for row in tile.chunks_exact(self.panels.stride).take(count * self.blocks) {
                            sink.put(&row[..self.n]);
                        }
                    }
                }
            }
        })
    }

    /// `row · W · other[at[p]]` for every edge, by edge id; `other` is `blocks · n` wide.
    pub(crate) fn dots(&self, other: &[A], scale: Option<&[A]>) -> Vec<A> {
        use rayon::prelude::*;
        scatter_rows(self.side.edges.len(), 1, |out| {
            self.runs().into_par_iter().for_each(|run| {
                let mut tile = Vec::new();
                for block in run {
                    for (relation, pairs) in self.side.groups_of(block) {
                        for from in pairs.clone().step_by(TILE) {
                            let count = TILE.min(pairs.end - from);
                            self.tile(relation, from, count, &mut tile);
                            let mut row = Vec::with_capacity(self.width());
                            for pair in from..from + count {
                                row.clear();
                                let padded = &tile[(pair - from) * self.stride()..][..self.stride()];
                                padded.chunks_exact(self.panels.stride).for_each(|b| row.extend_from_slice(&b[..self.n]));
                                for p in self.side.edges_of(pair) {
                                    if let Some(&next) = self.side.others.get(p + AHEAD) {
                                        prefetch(other, next as usize * row.len(), row.len());
                                    }
                                    let with = &other[self.side.others[p] as usize * row.len()..][..row.len()];
                                    let dot = vectorised(Dot(&row, with));
                                    // SAFETY: every edge stands at one position, of one block, of one run.
                                    let to = unsafe { out.row_mut(self.side.edges[p] as usize) };
                                    to[0] = scale.map_or(dot, |s| dot * s[p]);
                                }
                            }
                        }
                    }
                }
            });
        })
    }

    /// The products of `count` pairs of one relation from pair `first` on.
    fn tile(&self, relation: usize, first: usize, count: usize, tile: &mut Vec<A>) {
        tile.resize(TILE * self.stride(), A::ZERO);
        vectorised(Tile { products: self, relation, owners: &self.side.pair_rows[first..first + count], tile });
    }
}

struct Tile<'r, 'a, A> {
    products: &'r Products<'a, A>,
    relation: usize,
    owners: &'r [u32],
    tile: &'r mut [A],
}

impl<A: Real> Vectorised for Tile<'_, '_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { products: p, relation, owners, tile } = self;
        let (width, stride, k) = (p.blocks * p.k, p.stride(), p.k);
        for b in 0..p.blocks {
            for (c, panel) in p.panels.matrix(relation * p.blocks + b).chunks_exact(k * LANES).enumerate() {
                let column = b * p.panels.stride + c * LANES;
                let row = |m: usize| &p.own[owners[m] as usize * width + b * k..][..k];
                let mut m = 0;
                while m + 4 <= owners.len() {
                    for (i, sum) in product([row(m), row(m + 1), row(m + 2), row(m + 3)], panel).iter().enumerate() {
                        tile[(m + i) * stride + column..][..LANES].copy_from_slice(sum);
                    }
                    m += 4;
                }
                while m < owners.len() {
                    tile[m * stride + column..][..LANES].copy_from_slice(&product([row(m)], panel)[0]);
                    m += 1;
                }
            }
        }
    }
}

/// A dot product in fixed lanes.
struct Dot<'a, A>(&'a [A], &'a [A]);

impl<A: Real> Vectorised for Dot<'_, A> {
    type Out = A;
    #[inline(always)]
    fn run(self) -> A {
        let mut lanes = [A::ZERO; LANES];
        let (a, b) = (self.0.chunks_exact(LANES), self.1.chunks_exact(LANES));
        let rest = a.remainder().iter().zip(b.remainder());
        for (a, b) in a.zip(b) {
            for ((l, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
                *l += a * b;
            }
        }
        for (l, (&a, &b)) in lanes.iter_mut().zip(rest) {
            *l += a * b;
        }
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                let other = lanes[i + half];
                lanes[i] += other;
            }
            half /= 2;
        }
        lanes[0]
    }
}
