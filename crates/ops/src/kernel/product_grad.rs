//! Both gradients of `u_mul_e` in one walk over out-edges.
//!
//! ```text
//! for u:  for (v, e) in row u of CSR:   g = grad[v]
//!           d lhs[u] += w[e] g          d w[e] = lhs[u] · g   (per entry of w)
//! ```
//! `grad[v]` is gathered once for both; `lhs[u]` and `d lhs[u]` stay in registers.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::gather::{each, for_blocks, put};
use super::lanes::Lanes;
use super::layout::{Eights, Layout, One, Same, Sixteens};
use super::simd::{Blocked, Reach};
use super::{Acc, Adjacency, Elem, Scatter, Sink, ahead, by_edges, collect_rows, prefetch, scatter_every_row, scatter_rows};

/// What the gradients of `lhs[u] * w[e]` read.
pub(crate) struct Product<'a, T, R> {
    /// CSR.
    pub(crate) rows: Adjacency<'a>,
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
    /// Whether an entry gathers several blocks of columns. Its memory is zeros at first then.
    const ADDS: bool;
    /// Entries of a row of weights.
    fn len(self, width: usize) -> usize;
    /// Writes all entries of the products of columns `col..col + N * K`, of which the last `keep` are new, or
    /// adds to them.
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut [MaybeUninit<Self::Entry<T>>],
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        keep: usize,
    );
    /// Rounds to the element type.
    fn finish<T: Elem>(entries: Vec<Self::Entry<T>>) -> Vec<T>;
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for Same {
    const ADDS: bool = false;
    type Entry<T: Elem> = T;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut [MaybeUninit<T>],
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        _: usize,
    ) {
        let to = &mut to[col..][..N * K];
        each!(k < K, {
            let entries = &mut to[N * k..N * k + N];
            for i in 0..N {
                entries[i].write(T::of(products[k].0[i]));
            }
        });
    }
    fn finish<T: Elem>(entries: Vec<T>) -> Vec<T> {
        entries
    }
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for One {
    const ADDS: bool = true;
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, _: usize) -> usize {
        1
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut [MaybeUninit<T::Acc>],
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        keep: usize,
    ) {
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
        add(&mut to[0], all.sum(), col == 0);
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for Eights {
    const ADDS: bool = false;
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width / 8
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut [MaybeUninit<T::Acc>],
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        _: usize,
    ) {
        // Every entry belongs to one block; one that reaches back writes the same again.
        let to = &mut to[col / 8..][..(N * K).div_ceil(8)];
        each!(k < K, {
            let (mut low, mut high) = (Lanes::<T::Acc, 8>::splat(T::Acc::ZERO), Lanes::<T::Acc, 8>::splat(T::Acc::ZERO));
            for i in 0..N.min(8) {
                low.0[i] = products[k].0[i];
            }
            to[N * k / 8].write(low.sum());
            if N == 16 {
                for i in 8..N {
                    high.0[i - 8] = products[k].0[i];
                }
                to[N * k / 8 + 1].write(high.sum());
            }
        });
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

impl Reduced for Sixteens {
    const ADDS: bool = true;
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width / self.0
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut [MaybeUninit<T::Acc>],
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        _: usize,
    ) {
        each!(k < K, {
            let column = col + N * k;
            add(&mut to[column / self.0], products[k].sum(), column.is_multiple_of(self.0));
        });
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

/// Adds to an entry of a layout that [adds](Reduced::ADDS). The `first` contribution is written without a
/// look at the entry, which would have to come from memory.
#[inline(always)]
fn add<A: Acc>(entry: &mut MaybeUninit<A>, x: A, first: bool) {
    if first {
        entry.write(x);
        return;
    }
    // SAFETY: `product_grad` gives layouts that add memory of zeros.
    let before = unsafe { entry.assume_init() };
    entry.write(before + x);
}

/// `(d lhs, d w)`.
pub(crate) fn product_grad<T: Elem, R: Reduced>(product: &Product<'_, T, R>) -> (Vec<T>, Vec<T>) {
    assert!(product.width > 0, "messages without columns have no blocks");
    let len = product.layout.len(product.width);
    let edges = product.rows.indices.len();
    let mut d_lhs = Vec::new();
    let work = |d_weight: &Scatter<'_, R::Entry<T>>| {
        d_lhs = collect_rows(&by_edges(product.rows.indptr, 2 * product.width), product.width, &|run, out| {
            T::Hot::run(Rows { product, run, out, d_weight });
        });
    };
    let d_weight = if R::ADDS {
        scatter_rows(edges, len, work)
    } else {
        // SAFETY: every position of the layout lies in one row of one run and its edge id is its own. The
        // blocks of columns cover a row, as there are columns, and a layout that does not add writes all
        // entries of a block.
        unsafe { scatter_every_row(edges, len, work) }
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
        let ahead = ahead::<T>(width);
        for u in self.run {
            let edges = rows.row(u);
            // Products are summed in blocks of 128 columns whatever the registers hold, so that their bits do
            // not depend on the instruction set. Where sums of such a block do not fit beside them, the two
            // gradients take turns.
            if WIDE >= 8 {
                for_blocks!(width, 8, |col, keep, N, K| {
                    let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                    let own = own::<T, N, K>(lhs, u * width + col);
                    for p in edges.clone() {
                        if col == 0 {
                            fetch(self.product, self.d_weight, p + ahead);
                        }
                        let (v, id) = (rows.indices[p] as usize, rows.edge_id(p));
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
                        let to = unsafe { self.d_weight.unwritten(id) };
                        layout.write::<T, N, K>(to, products, col, keep);
                    }
                    put(self.out, acc, keep);
                });
                continue;
            }
            for_blocks!(width, WIDE, |col, keep, N, K| {
                let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                if let Some(weight) = weight {
                    for p in edges.clone() {
                        if col == 0 {
                            fetch(self.product, self.d_weight, p + ahead);
                        }
                        let (v, id) = (rows.indices[p] as usize, rows.edge_id(p));
                        let row = &grad[v * width + col..][..N * K];
                        let part = layout.part(weight, id, width, col, N * K);
                        each!(k < K, {
                            acc[k] = acc[k].add(Lanes::load(row, N * k).mul(R::lanes::<T, N>(part, N * k)));
                        });
                    }
                }
                put(self.out, acc, keep);
            });
            for_blocks!(width, 8, |col, keep, N, K| {
                let own = own::<T, N, K>(lhs, u * width + col);
                for p in edges.clone() {
                    let (v, id) = (rows.indices[p] as usize, rows.edge_id(p));
                    let row = &grad[v * width + col..][..N * K];
                    let mut products = own;
                    each!(k < K, {
                        products[k] = own[k].mul(Lanes::load(row, N * k));
                    });
                    // SAFETY: this position is in this run only, and its edge id is its own.
                    let to = unsafe { self.d_weight.unwritten(id) };
                    layout.write::<T, N, K>(to, products, col, keep);
                }
            });
        }
    }
}

/// Asks for what the edge at position `p` reads, and for a row that it writes: its lines lie anywhere, and a store waits
/// for each.
///
/// No closure: called in two places it would be a call for every edge, with all sums put out of their registers.
#[inline(always)]
fn fetch<T: Elem, R: Reduced>(product: &Product<'_, T, R>, d_weight: &Scatter<'_, R::Entry<T>>, p: usize) {
    let Product { rows, grad, weight, layout, width, .. } = *product;
    let Some(&v) = rows.indices.get(p) else { return };
    prefetch(grad, v as usize * width, width);
    let (id, len) = (rows.edge_id(p), layout.len(width));
    if len < 16 {
        d_weight.ask(id, 0, len);
    }
    if let Some(weight) = weight {
        layout.fetch(weight, id, width);
    }
}

/// The block of the own row from entry `at` on.
#[inline(always)]
fn own<T: Elem, const N: usize, const K: usize>(lhs: &[T], at: usize) -> [Lanes<T::Acc, N>; K] {
    let row = &lhs[at..][..N * K];
    let mut lanes = [Lanes::splat(T::Acc::ZERO); K];
    each!(k < K, {
        lanes[k] = Lanes::load(row, N * k);
    });
    lanes
}
