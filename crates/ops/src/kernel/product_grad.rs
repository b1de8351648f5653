//! Both gradients of `u_mul_e` in one walk over out-edges.
//!
//! ```text
//! for u:  for (v, e) in row u of CSR:   g = grad[v]
//!           d lhs[u] += w[e] g          d w[e] = lhs[u] · g   (per entry of w)
//! ```
//! `grad[v]` is gathered once for both; `lhs[u]` and `d lhs[u]` stay in registers.

use std::ops::Range;

use burn_gnn_graph::Compressed;

use super::gather::{each, for_blocks, put};
use super::lanes::Lanes;
use super::layout::{Eights, Layout, One, Same, Sixteens};
use super::simd::{Blocked, Reach};
use super::{Acc, Elem, Scatter, Sink, by_edges, collect_rows, prefetch, scatter_every_row};

/// What the gradients of `lhs[u] * w[e]` read.
pub(crate) struct Product<'a, T, R> {
    /// CSR.
    pub(crate) rows: &'a Compressed,
    /// Gradient of the result, a row for every destination.
    pub(crate) grad: &'a [T],
    /// As wide as a message.
    pub(crate) lhs: &'a [T],
    /// By edge id; without, `d lhs` is not wanted and comes out as zeros.
    pub(crate) weight: Option<&'a [T]>,
    pub(crate) layout: R,
    pub(crate) width: usize,
}

/// How a layout's weight gradient is made of the products `lhs · grad` of a block.
pub(crate) trait Reduced: Layout {
    /// What a weight's gradient is kept as while it is summed: blocks of columns come one by one.
    type Entry<T: Elem>: bytemuck::Pod + Send;
    /// Entries of a row of weights.
    fn len(self, width: usize) -> usize;
    /// Writes (the first contribution) or adds the products of columns `col..col + N * K`, of which the
    /// last `keep` are new.
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut [Self::Entry<T>],
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        keep: usize,
    );
    /// Rounds to the element type.
    fn finish<T: Elem>(entries: Vec<Self::Entry<T>>) -> Vec<T>;
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for Same {
    type Entry<T: Elem> = T;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(self, to: &mut [T], products: [Lanes<T::Acc, N>; K], col: usize, _: usize) {
        let to = &mut to[col..][..N * K];
        each!(k < K, {
            let entries = &mut to[N * k..N * k + N];
            for i in 0..N {
                entries[i] = T::of(products[k].0[i]);
            }
        });
    }
    fn finish<T: Elem>(entries: Vec<T>) -> Vec<T> {
        entries
    }
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for One {
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, _: usize) -> usize {
        1
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(self, to: &mut [T::Acc], products: [Lanes<T::Acc, N>; K], col: usize, keep: usize) {
        let mut all = Lanes::splat(T::Acc::ZERO);
        each!(k < K, {
            all = all.add(products[k]);
        });
        if K == 1 && keep < N {
            // Columns done before.
            for i in 0..N {
                all.0[i] = if i < N - keep { T::Acc::ZERO } else { all.0[i] };
            }
        }
        to[0] = if col == 0 { all.sum() } else { to[0] + all.sum() };
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for Eights {
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width / 8
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(self, to: &mut [T::Acc], products: [Lanes<T::Acc, N>; K], col: usize, _: usize) {
        // Every entry belongs to one block; one that reaches back writes the same again.
        let to = &mut to[col / 8..][..(N * K).div_ceil(8)];
        each!(k < K, {
            let (mut low, mut high) = (Lanes::<T::Acc, 8>::splat(T::Acc::ZERO), Lanes::<T::Acc, 8>::splat(T::Acc::ZERO));
            for i in 0..N.min(8) {
                low.0[i] = products[k].0[i];
            }
            to[N * k / 8] = low.sum();
            if N == 16 {
                for i in 8..N {
                    high.0[i - 8] = products[k].0[i];
                }
                to[N * k / 8 + 1] = high.sum();
            }
        });
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

impl Reduced for Sixteens {
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width / self.0
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(self, to: &mut [T::Acc], products: [Lanes<T::Acc, N>; K], col: usize, _: usize) {
        each!(k < K, {
            let (column, sum) = (col + N * k, products[k].sum());
            let entry = &mut to[column / self.0];
            *entry = if column % self.0 == 0 { sum } else { *entry + sum };
        });
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

/// `(d lhs, d w)`.
pub(crate) fn product_grad<T: Elem, R: Reduced>(product: &Product<'_, T, R>) -> (Vec<T>, Vec<T>) {
    let len = product.layout.len(product.width);
    let edges = product.rows.indices().len();
    let mut d_lhs = Vec::new();
    // SAFETY: every position of the layout lies in one row of one run, its edge id is its own, and every
    // block of columns of its row is written.
    let d_weight = unsafe {
        scatter_every_row::<R::Entry<T>>(edges, len, |d_weight| {
            d_lhs = collect_rows(&by_edges(product.rows.indptr(), 2 * product.width), product.width, &|run, out| {
                T::Hot::run(Rows { product, run, out, d_weight });
            });
        })
    };
    (d_lhs, R::finish(d_weight))
}

struct Rows<'a, 'b, T: Elem, R: Reduced> {
    product: &'a Product<'a, T, R>,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
    d_weight: &'a Scatter<'a, R::Entry<T>>,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<T: Elem, R: Reduced> Blocked for Rows<'_, '_, T, R> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let Product { rows, grad, lhs, weight, layout, width } = *self.product;
        for u in self.run {
            let edges = rows.row(u);
            for_blocks!(width, WIDE, |col, keep, N, K| {
                let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                let own = &lhs[u * width + col..][..N * K];
                let own = {
                    let mut lanes = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                    each!(k < K, {
                        lanes[k] = Lanes::load(own, N * k);
                    });
                    lanes
                };
                for p in edges.clone() {
                    if let Some(&v) = rows.indices().get(p + 12).filter(|_| col == 0) {
                        prefetch(grad, v as usize * width, width);
                        if let Some(weight) = weight {
                            layout.fetch(weight, rows.edge_id(p + 12) as usize, width);
                        }
                    }
                    let (v, id) = (rows.indices()[p] as usize, rows.edge_id(p) as usize);
                    let row = &grad[v * width + col..][..N * K];
                    if let Some(weight) = weight {
                        let part = layout.part(weight, id, width, col, N * K);
                        each!(k < K, {
                            acc[k] = acc[k].add(Lanes::load(row, N * k).mul(R::lanes::<T, N>(part, N * k)));
                        });
                    }
                    let mut products = own;
                    each!(k < K, {
                        products[k] = own[k].mul(Lanes::load(row, N * k));
                    });
                    // SAFETY: this position is in this run only, and its edge id is its own.
                    let to = unsafe { self.d_weight.row_mut(id) };
                    layout.write::<T, N, K>(to, products, col, keep);
                }
                put(self.out, acc, keep);
            });
        }
    }
}
