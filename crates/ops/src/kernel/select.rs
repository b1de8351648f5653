//! The largest or smallest message of a row, column by column, and the edge it came from.

use std::ops::Range;

use super::gather::{Messages, Op, each, for_blocks, put, put_last};
use super::lanes::Lanes;
use super::layout::Layout;
use super::simd::{Blocked, Reach};
use super::{Acc, Elem, Sink, by_edges, collect_rows2};

/// Values and winning edge ids, `width` columns for every row; rows without edges have value 0 and winner -1.
/// No value is ever taken for a marker.
///
/// `W` is what the loops are compiled for. The smallest is the largest with all signs turned, which is exact.
pub(crate) fn select<T: Elem, O: Op, R: Layout, W: Reach>(messages: &Messages<'_, T, O, R>, max: bool) -> (Vec<T>, Vec<i32>) {
    let (width, sign) = (messages.width, if max { T::Acc::ONE } else { -T::Acc::ONE });
    // Two outputs and a comparison of three parts.
    collect_rows2(&by_edges(messages.rows.indptr(), 2 * width), [width, width], &|run, out, arg| {
        W::run(SelectRows { messages, sign, run, out, arg });
    })
}

struct SelectRows<'a, 'b, 'c, T: Elem, O, R> {
    messages: &'a Messages<'a, T, O, R>,
    sign: T::Acc,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
    arg: &'a mut Sink<'c, i32>,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<T: Elem, O: Op, R: Layout> Blocked for SelectRows<'_, '_, '_, T, O, R> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let (m, sign) = (self.messages, self.sign);
        for v in self.run {
            let edges = m.rows.row(v);
            for_blocks!(m.width, WIDE, |col, keep, N, K| {
                let mut best = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                let mut winner = [Lanes::<i32, N>([-1; N]); K];
                if !edges.is_empty() {
                    // The first message wins all columns, whatever it is.
                    let edge = m.edge(edges.start, col, N * K);
                    winner = [Lanes([m.rows.edge_id(edges.start) as i32; N]); K];
                    each!(k < K, {
                        best[k] = m.lanes(&edge, N * k).scale(sign);
                    });
                }
                for p in edges.clone() {
                    if col == 0 {
                        m.fetch(p);
                    }
                    let id = m.rows.edge_id(p) as i32;
                    let edge = m.edge(p, col, N * K);
                    each!(k < K, {
                        let (b, mut w) = (best[k], winner[k]);
                        let x = m.lanes(&edge, N * k).scale(sign);
                        for i in 0..N {
                            w.0[i] = if better(x.0[i], b.0[i]) { id } else { w.0[i] };
                        }
                        winner[k] = w;
                        best[k] = b.zip(x, |b, x| if better(x, b) { x } else { b });
                    });
                }
                each!(k < K, {
                    best[k] = best[k].scale(sign);
                });
                put(self.out, best, keep);
                each!(k < K, {
                    put_last(self.arg, &winner[k].0, if K == 1 { keep } else { N });
                });
            });
        }
    }
}

/// Strictly larger, so that the first of equal messages stays; a NaN beats every number and the first stays.
#[inline(always)]
#[allow(clippy::eq_op)] // `x != x` asks for NaN without a call, so that the loop vectorises.
pub(crate) fn better<A: Acc>(m: A, best: A) -> bool {
    (m > best) | ((m != m) & (best == best))
}

/// Gradient of a selection of copied rows: entry `j` of row `u` sums `grad[v, j]` over the out-edges
/// `(u, v, e)` that won there.
///
/// It gathers, as every kernel here: one writer for every entry, at the price of reading the winners of
/// destinations that the row did not win.
pub(crate) fn select_grad<T: Elem>(rows: &burn_gnn_graph::Compressed, grad: &[T], arg: &[i32], width: usize) -> Vec<T> {
    super::collect_rows(&by_edges(rows.indptr(), 2 * width), width, &|run, out| {
        T::Hot::run(Passed { rows, grad, arg, width, run, out });
    })
}

struct Passed<'a, 'b, T> {
    rows: &'a burn_gnn_graph::Compressed,
    grad: &'a [T],
    arg: &'a [i32],
    width: usize,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<T: Elem> Blocked for Passed<'_, '_, T> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let n = self.width;
        for u in self.run {
            let edges = self.rows.row(u);
            for_blocks!(n, WIDE, |col, keep, N, K| {
                let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                for p in edges.clone() {
                    if let Some(&v) = self.rows.indices().get(p + 12).filter(|_| col == 0) {
                        super::prefetch(self.grad, v as usize * n, n);
                        super::prefetch(self.arg, v as usize * n, n);
                    }
                    let (at, id) = (self.rows.indices()[p] as usize * n + col, self.rows.edge_id(p) as i32);
                    let (grad, arg) = (&self.grad[at..][..N * K], &self.arg[at..][..N * K]);
                    each!(k < K, {
                        let (g, winner) = (Lanes::<T::Acc, N>::load(grad, N * k), &arg[N * k..N * k + N]);
                        // Chosen, not multiplied by 0: an infinity of another edge must not become NaN.
                        let mut passed = g;
                        for i in 0..N {
                            passed.0[i] = if winner[i] == id { g.0[i] } else { T::Acc::ZERO };
                        }
                        acc[k] = acc[k].add(passed);
                    });
                }
                put(self.out, acc, keep);
            });
        }
    }
}
