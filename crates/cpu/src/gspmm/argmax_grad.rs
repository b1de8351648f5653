//! Gradient of max and min of `copy_u`.

use std::ops::Range;

use super::argmax::{GROUP, WORDS};
use super::gather::{WIDE_ROW, for_blocks, put};
use crate::number::lanes::Lanes;
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::by_edges;
use crate::prefetch::{FAR, ahead, from_memory};
use crate::simd::instruction_sets::{Blocked, InstructionSets};
use crate::simd::unroll::each;
use burn_gnn_structure::internal::{Cache, prefetch, prefetch_to};

/// The gradient of the copied operand: entry `(u, j)` is the sum of `grad[v, j]` over the out-edges `(u, v, e)` that are
/// the argmax of `(v, j)`.
///
/// The kernel gathers, so every entry has one writer. It also reads gradients of destinations of which `u` is not the
/// argmax.
pub(crate) fn select_grad<T: Elem>(
    rows: Adjacency<'_>,
    grad: &[T],
    argmax: SavedArgmax<'_>,
    width: usize,
) -> Vec<T> {
    collect_rows(&by_edges(rows.indptr, 2 * width), width, &|run, out| match argmax {
        SavedArgmax::Ids(ids) => {
            T::HotLoop::run(ArgmaxGrad { rows, grad, argmax: OfNodes(ids), width, run, out })
        }
        SavedArgmax::Bits { bits, words } => T::HotLoop::run(ArgmaxGrad {
            rows,
            grad,
            argmax: OfEdges { bits, words },
            width,
            run,
            out,
        }),
    })
}

/// The argmax that was saved for backward.
#[derive(Clone, Copy)]
pub(crate) enum SavedArgmax<'a> {
    /// Edge ids of every destination, from [`select_ids`](super::argmax::select_ids).
    Ids(&'a [i32]),
    /// Bits of every edge, from [`select_bits`](super::argmax::select_bits).
    Bits {
        /// `words` words per edge.
        bits: &'a [i32],
        /// 32-bit words per edge.
        words: usize,
    },
}

/// Tests whether an edge is the argmax of a column.
trait IsArgmax: Copy + Sync {
    /// The part of the argmax that a block of columns of one edge reads.
    type Part: Copy;
    /// Prefetches the argmax of edge `id` into `v`.
    fn fetch(self, to: Cache, v: usize, id: usize, width: usize);
    /// The part for columns `col..col + len` of edge `id` into `v`.
    fn part(self, v: usize, id: usize, width: usize, col: usize, len: usize) -> Self::Part;
    /// The lanes of `g`, which start at column `16 k` of the part, for which the edge is the argmax; 0 for the others.
    ///
    /// Lanes are selected rather than multiplied by 0: an infinity of another edge must not become NaN.
    fn pass<A: Acc, const N: usize>(part: Self::Part, k: usize, g: Lanes<A, N>) -> Lanes<A, N>;
}

#[derive(Clone, Copy)]
struct OfNodes<'a>(&'a [i32]);

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<'a> IsArgmax for OfNodes<'a> {
    type Part = (&'a [i32], i32);
    #[inline(always)]
    fn fetch(self, to: Cache, v: usize, _: usize, width: usize) {
        prefetch_to(to, self.0, v * width, width);
    }
    #[inline(always)]
    fn part(self, v: usize, id: usize, width: usize, col: usize, len: usize) -> Self::Part {
        (&self.0[v * width + col..][..len], id as i32)
    }
    #[inline(always)]
    fn pass<A: Acc, const N: usize>(
        (ids, id): Self::Part,
        k: usize,
        g: Lanes<A, N>,
    ) -> Lanes<A, N> {
        let (ids, mut passed) = (&ids[N * k..][..N], g);
        for i in 0..N {
            passed.0[i] = if ids[i] == id { g.0[i] } else { A::ZERO };
        }
        passed
    }
}

#[derive(Clone, Copy)]
struct OfEdges<'a> {
    bits: &'a [i32],
    words: usize,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl IsArgmax for OfEdges<'_> {
    type Part = Lanes<u32, 16>;
    #[inline(always)]
    fn fetch(self, to: Cache, _: usize, id: usize, _: usize) {
        prefetch_to(to, self.bits, id * self.words, self.words);
    }
    #[inline(always)]
    fn part(self, _: usize, id: usize, _: usize, col: usize, _: usize) -> Self::Part {
        // The width is a multiple of 16 columns, so blocks start at a multiple of 16 and do not cross groups.
        let four = &self.bits[id * self.words + col / GROUP * WORDS..][..WORDS];
        let bytes: [u8; 16] = bytemuck::cast([four[0], four[1], four[2], four[3]]);
        let mut lanes = Lanes([0; 16]);
        for i in 0..16 {
            lanes.0[i] = u32::from(bytes[i]) >> (col % GROUP / 16);
        }
        lanes
    }
    #[inline(always)]
    fn pass<A: Acc, const N: usize>(part: Self::Part, k: usize, g: Lanes<A, N>) -> Lanes<A, N> {
        let mut passed = g;
        for i in 0..N {
            passed.0[i] = if part.0[i] & (1 << k) != 0 { g.0[i] } else { A::ZERO };
        }
        passed
    }
}

struct ArgmaxGrad<'a, 'b, T, W> {
    rows: Adjacency<'a>,
    grad: &'a [T],
    argmax: W,
    width: usize,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
}

impl<T: Elem, W: IsArgmax> Blocked for ArgmaxGrad<'_, '_, T, W> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let (n, argmax) = (self.width, self.argmax);
        let (ahead, from_memory) = (ahead::<T>(n), from_memory(size_of_val(self.grad)));
        for u in self.run {
            let edges = self.rows.row(u);
            for_blocks!(n, WIDE, |col, keep, N, K| {
                let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                for p in edges.clone() {
                    if N * K >= WIDE_ROW
                        && from_memory
                        && col == 0
                        && let Some(&v) = self.rows.indices.get(p + FAR * ahead)
                    {
                        let id = self.rows.edge_id(p + FAR * ahead);
                        prefetch_to(Cache::Second, self.grad, v as usize * n, n);
                        argmax.fetch(Cache::Second, v as usize, id, n);
                    }
                    if let Some(&v) = self.rows.indices.get(p + ahead).filter(|_| col == 0) {
                        prefetch(self.grad, v as usize * n, n);
                        argmax.fetch(Cache::First, v as usize, self.rows.edge_id(p + ahead), n);
                    }
                    let (v, id) = (self.rows.indices[p] as usize, self.rows.edge_id(p));
                    let (grad, part) =
                        (&self.grad[v * n + col..][..N * K], argmax.part(v, id, n, col, N * K));
                    each!(k < K, {
                        acc[k] =
                            acc[k].add(W::pass(part, k, Lanes::<T::Acc, N>::load(grad, N * k)));
                    });
                }
                put(self.out, acc, keep);
            });
        }
    }
}
