//! Multiplies the row of each (relation, row) pair with the weights of the relation.
//!
//! The multiply-first method gathers these products, and the gradient of `norm` is computed from them.

use super::grouped_edges::GroupedEdges;
use crate::dense::small_products::{LANES, Panels, product};
use crate::dense::widen::{append, as_sums};
use crate::number::Elem;
use crate::number::Real;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_rows::OutputRows;
use crate::parallel::scatter::Scattered;
use crate::parallel::scatter::scatter;
use crate::simd::instruction_sets::{Vectorised, vectorised};
use burn_gnn_structure::internal::prefetch;

/// Number of pairs that are multiplied at a time.
const TILE: usize = 32;
/// How many edges ahead rows are prefetched.
const AHEAD: usize = 16;

/// Products of rows of `blocks · k` entries with block-diagonal weights of `blocks` matrices `[k, n]`.
pub(super) struct Products<'a, T: Elem> {
    pub(super) grouped: &'a GroupedEdges,
    /// One row per row of the grouped endpoint.
    pub(super) own: &'a [T],
    pub(super) panels: &'a Panels<T::Acc>,
    pub(super) blocks: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// Buffers of a thread.
struct Scratch<A> {
    /// Widened rows of the pairs of a tile, for element types narrower than the accumulator.
    own: Vec<A>,
    /// Products of the pairs of a tile.
    tile: Vec<A>,
}

impl<A> Scratch<A> {
    fn new() -> Self {
        Self { own: Vec::new(), tile: Vec::new() }
    }
}

impl<A: Real, T: Elem<Acc = A>> Products<'_, T> {
    fn stride(&self) -> usize {
        self.blocks * self.panels.stride
    }
    fn width(&self) -> usize {
        self.blocks * self.n
    }
    fn runs(&self) -> Vec<std::ops::Range<usize>> {
        let work = self
            .grouped
            .num_pairs()
            .saturating_mul(self.stride().saturating_mul(self.k) / LANES + self.width());
        self.grouped.runs((work >> 18).clamp(1, 8 * rayon::current_num_threads()))
    }

    /// The products of all pairs, `[pairs, blocks · n]`, not rounded.
    pub(super) fn per_pair(&self) -> Vec<A> {
        let runs = self.runs();
        let rows: Vec<_> = runs
            .iter()
            .map(|r| self.grouped.first_pair(r.start)..self.grouped.first_pair(r.end))
            .collect();
        let pairs_to_run = |pair: usize| rows.partition_point(|r| r.end <= pair);
        collect_rows(&rows, self.width(), &|run, sink| {
            if run.is_empty() {
                return;
            }
            let mut scratch = Scratch::new();
            for block in runs[pairs_to_run(run.start)].clone() {
                for (relation, pairs) in self.grouped.groups_of(block) {
                    for from in pairs.clone().step_by(TILE) {
                        let count = TILE.min(pairs.end - from);
                        self.tile(relation, from, count, &mut scratch);
                        for row in
                            scratch.tile.chunks_exact(self.panels.stride).take(count * self.blocks)
                        {
                            sink.put(&row[..self.n]);
                        }
                    }
                }
            }
        })
    }

    /// `<own[row] W, other[other endpoint]>` for every edge, by edge id. `other` has `blocks · n` entries per row.
    pub(super) fn dots(&self, other: &[T], scale: Option<&[A]>) -> Vec<T> {
        let (others, runs) = (self.grouped.others(), self.runs());
        let positions = runs
            .iter()
            .map(|run| self.grouped.edges_before(run.start)..self.grouped.edges_before(run.end))
            .collect();
        let out = Scattered {
            rows: OutputRows::permuted(self.grouped.edges()),
            positions,
            width: 1,
            zeroed: false,
        };
        scatter(out, runs, &|run: std::ops::Range<usize>, out| {
            out.whole();
            let mut scratch = Scratch::new();
            for block in run {
                for (relation, pairs) in self.grouped.groups_of(block) {
                    for from in pairs.clone().step_by(TILE) {
                        let count = TILE.min(pairs.end - from);
                        self.tile(relation, from, count, &mut scratch);
                        let mut row = Vec::with_capacity(self.width());
                        for pair in from..from + count {
                            row.clear();
                            let padded =
                                &scratch.tile[(pair - from) * self.stride()..][..self.stride()];
                            padded
                                .chunks_exact(self.panels.stride)
                                .for_each(|b| row.extend_from_slice(&b[..self.n]));
                            for p in self.grouped.edges_of(pair) {
                                if let Some(&next) = others.get(p + AHEAD) {
                                    prefetch(other, next as usize * row.len(), row.len());
                                }
                                let with = &other[others[p] as usize * row.len()..][..row.len()];
                                let dot = vectorised(Dot(&row, with));
                                out.put(1, |to| {
                                    to.fill(1, T::of(scale.map_or(dot, |s| dot * s[p])))
                                });
                            }
                        }
                    }
                }
            }
        })
    }

    /// Computes the products of `count` pairs of one relation, starting at pair `first`.
    fn tile(&self, relation: usize, first: usize, count: usize, scratch: &mut Scratch<A>) {
        let Scratch { own, tile } = scratch;
        tile.resize(TILE * self.stride(), A::ZERO);
        let owners = &self.grouped.pair_rows()[first..first + count];
        let width = self.blocks * self.k;
        let rows = match as_sums(self.own) {
            Some(all) => Rows::Of(all, owners),
            None => {
                own.clear();
                append(owners.iter().map(|&row| &self.own[row as usize * width..][..width]), own);
                Rows::Gathered(own, count)
            }
        };
        vectorised(Tile {
            panels: self.panels,
            matrix: relation * self.blocks,
            blocks: self.blocks,
            k: self.k,
            rows,
            tile,
        });
    }
}

/// The rows of the pairs of a tile.
#[derive(Clone, Copy)]
enum Rows<'r, A> {
    /// All rows, and the row numbers of the pairs.
    Of(&'r [A], &'r [u32]),
    /// The concatenated rows of the pairs, and their number.
    Gathered(&'r [A], usize),
}

struct Tile<'r, A> {
    panels: &'r Panels<A>,
    /// The first of `blocks` matrices.
    matrix: usize,
    blocks: usize,
    k: usize,
    rows: Rows<'r, A>,
    tile: &'r mut [A],
}

impl<A: Real> Vectorised for Tile<'_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        let Self { panels, matrix, blocks, k, rows, tile } = self;
        let (width, stride) = (blocks * k, blocks * panels.stride);
        let count = match rows {
            Rows::Of(_, owners) => owners.len(),
            Rows::Gathered(_, count) => count,
        };
        for b in 0..blocks {
            for (c, panel) in panels.matrix(matrix + b).chunks_exact(k * LANES).enumerate() {
                let column = b * panels.stride + c * LANES;
                let row = |m: usize| match rows {
                    Rows::Of(all, owners) => &all[owners[m] as usize * width + b * k..][..k],
                    Rows::Gathered(some, _) => &some[m * width + b * k..][..k],
                };
                let mut m = 0;
                while m + 4 <= count {
                    for (i, sum) in product([row(m), row(m + 1), row(m + 2), row(m + 3)], panel)
                        .iter()
                        .enumerate()
                    {
                        tile[(m + i) * stride + column..][..LANES].copy_from_slice(sum);
                    }
                    m += 4;
                }
                while m < count {
                    tile[m * stride + column..][..LANES]
                        .copy_from_slice(&product([row(m)], panel)[0]);
                    m += 1;
                }
            }
        }
    }
}

/// A dot product in fixed lanes.
struct Dot<'a, T: Elem>(&'a [T::Acc], &'a [T]);

impl<A: Real, T: Elem<Acc = A>> Vectorised for Dot<'_, T> {
    type Out = A;
    #[inline(always)]
    fn run(self) -> A {
        let mut lanes = [A::ZERO; LANES];
        let (a, b) = (self.0.chunks_exact(LANES), self.1.chunks_exact(LANES));
        let rest = a.remainder().iter().zip(b.remainder());
        for (a, b) in a.zip(b) {
            for ((l, &a), b) in lanes.iter_mut().zip(a).zip(b) {
                *l += a * b.acc();
            }
        }
        for (l, (&a, b)) in lanes.iter_mut().zip(rest) {
            *l += a * b.acc();
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
