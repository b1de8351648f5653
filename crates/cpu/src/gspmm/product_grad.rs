//! Both gradients of `u_mul_e` in one pass over the out-edges.
//!
//! ```text
//! for u:  for (v, e) in row u of CSR:   g = grad[v]
//!           d lhs[u] += w[e] g          d w[e] = lhs[u] · g   (per entry of w)
//! ```
//! `grad[v]` is gathered once for both; `lhs[u]` and `d lhs[u]` stay in registers.

use std::ops::Range;

use super::gather::{WIDE_ROW, for_blocks, put};
use super::layout::{HeadsOf8, HeadsOf16, Layout, One, Same};
use crate::number::lanes::Lanes;
use crate::number::{Acc, Elem};
use crate::parallel::adjacency::Adjacency;
use crate::parallel::collect::collect_rows_and_edges;
use crate::parallel::output_buffer::Sink;
use crate::parallel::runs::by_edges;
use crate::parallel::scatter::{EdgeRows, Scattered};
use crate::prefetch::{FAR, ahead, from_memory};
use crate::simd::instruction_sets::{Blocked, InstructionSets};
use crate::simd::unroll::each;
use burn_gnn_structure::internal::{Cache, prefetch_to};

/// The tensors that the gradients of `lhs[u] * w[e]` are computed from.
pub(crate) struct Product<'a, T, R> {
    /// CSR.
    pub(crate) rows: Adjacency<'a>,
    /// Gradient of the result, one row per destination.
    pub(crate) grad: &'a [T],
    /// Rows of sources, `width` entries each.
    pub(crate) lhs: &'a [T],
    /// Weights by edge id. `None` if only their gradient is needed; then `d lhs` is zeros.
    pub(crate) weight: Option<&'a [T]>,
    pub(crate) layout: R,
    pub(crate) width: usize,
}

/// Reduces the products `lhs · grad` of a block of columns to the gradient of a weight.
pub(crate) trait Reduced: Layout {
    /// The type in which the gradient of a weight is summed over blocks of columns.
    type Entry<T: Elem>: bytemuck::Pod + Send;
    /// Whether an entry is a sum over several blocks of columns. Then the output starts as zeros.
    const ADDS: bool;
    /// Entries of a row of weights.
    fn len(self, width: usize) -> usize;
    /// The entries that depend on columns `col..col + len`, for a layout that does not add.
    fn entries(self, col: usize, len: usize) -> Range<usize>;
    /// Writes the entries of columns `col..col + N * K` of the edge at position `p`, or adds to them. The last `keep`
    /// columns are new.
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut EdgeRows<'_, Self::Entry<T>>,
        p: usize,
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
    fn entries(self, col: usize, len: usize) -> Range<usize> {
        col..col + len
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut EdgeRows<'_, T>,
        _: usize,
        products: [Lanes<T::Acc, N>; K],
        _: usize,
        _: usize,
    ) {
        to.put(N * K, |to| {
            each!(k < K, {
                let mut entries = [T::zeroed(); N];
                for i in 0..N {
                    // The sum with 0 makes 0 of -0, here and in the other layouts.
                    entries[i] = T::of(T::Acc::ZERO + products[k].0[i]);
                }
                to.put(&entries);
            })
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
    fn entries(self, _: usize, _: usize) -> Range<usize> {
        0..1
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut EdgeRows<'_, T::Acc>,
        p: usize,
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        keep: usize,
    ) {
        let mut all = Lanes::splat(T::Acc::ZERO);
        each!(k < K, {
            all = all.add(products[k]);
        });
        if K == 1 && keep < N {
            // The previous block added these columns.
            for i in 0..N {
                all.0[i] = if i < N - keep { T::Acc::ZERO } else { all.0[i] };
            }
        }
        add(&mut to.row(p)[0], all.sum(), col == 0);
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl Reduced for HeadsOf8 {
    const ADDS: bool = false;
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width / 8
    }
    #[inline(always)]
    fn entries(self, col: usize, len: usize) -> Range<usize> {
        col / 8..col / 8 + len.div_ceil(8)
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut EdgeRows<'_, T::Acc>,
        _: usize,
        products: [Lanes<T::Acc, N>; K],
        _: usize,
        _: usize,
    ) {
        // Every entry depends on one block. A block that overlaps with the previous one writes the same values again.
        to.put((N * K).div_ceil(8), |to| {
            each!(k < K, {
                let (mut low, mut high) = (
                    Lanes::<T::Acc, 8>::splat(T::Acc::ZERO),
                    Lanes::<T::Acc, 8>::splat(T::Acc::ZERO),
                );
                for i in 0..N.min(8) {
                    low.0[i] = products[k].0[i];
                }
                to.fill(1, T::Acc::ZERO + low.sum());
                if N == 16 {
                    for i in 8..N {
                        high.0[i - 8] = products[k].0[i];
                    }
                    to.fill(1, T::Acc::ZERO + high.sum());
                }
            })
        });
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

impl Reduced for HeadsOf16 {
    const ADDS: bool = true;
    type Entry<T: Elem> = T::Acc;
    #[inline(always)]
    fn len(self, width: usize) -> usize {
        width / self.0
    }
    #[inline(always)]
    fn entries(self, col: usize, len: usize) -> Range<usize> {
        col / self.0..(col + len).div_ceil(self.0)
    }
    #[inline(always)]
    fn write<T: Elem, const N: usize, const K: usize>(
        self,
        to: &mut EdgeRows<'_, T::Acc>,
        p: usize,
        products: [Lanes<T::Acc, N>; K],
        col: usize,
        _: usize,
    ) {
        let to = to.row(p);
        each!(k < K, {
            let column = col + N * k;
            let sum = T::Acc::ZERO + products[k].sum();
            add(&mut to[column / self.0], sum, column.is_multiple_of(self.0));
        });
    }
    fn finish<T: Elem>(entries: Vec<T::Acc>) -> Vec<T> {
        T::round(entries)
    }
}

/// Adds to an entry of a layout that [adds](Reduced::ADDS). The `first` contribution is stored without reading the entry,
/// which would be a cache miss.
#[inline(always)]
fn add<A: Acc>(entry: &mut A, x: A, first: bool) {
    *entry = if first { x } else { *entry + x };
}

/// The gradients `(d lhs, d w)`.
pub(crate) fn product_grad<T: Elem, R: Reduced>(product: &Product<'_, T, R>) -> (Vec<T>, Vec<T>) {
    assert!(product.width > 0, "messages without columns have no blocks");
    let runs = by_edges(product.rows.indptr, 2 * product.width);
    let d_weight = Scattered::by_edge(product.rows, &runs, product.layout.len(product.width));
    let d_weight = if R::ADDS { d_weight.zeroed() } else { d_weight };
    let (d_lhs, _, d_weight) = collect_rows_and_edges::<T, (), R::Entry<T>>(
        &runs,
        [product.width, 0],
        d_weight,
        &|run, out, _, d_weight| {
            T::HotLoop::run(Rows { product, run, out, d_weight });
        },
    );
    (d_lhs, R::finish(d_weight))
}

struct Rows<'a, 'b, 'c, T: Elem, R: Reduced> {
    product: &'a Product<'a, T, R>,
    run: Range<usize>,
    out: &'a mut Sink<'b, T>,
    d_weight: &'a mut EdgeRows<'c, R::Entry<T>>,
}

#[allow(clippy::needless_range_loop)] // Over several arrays at once.
impl<T: Elem, R: Reduced> Blocked for Rows<'_, '_, '_, T, R> {
    #[inline(always)]
    fn run<const WIDE: usize>(self) {
        let Product { rows, grad, lhs, weight, layout, width } = *self.product;
        let (ahead, from_memory) = (ahead::<T>(width), from_memory(size_of_val(grad)));
        for u in self.run {
            let edges = rows.row(u);
            if !R::ADDS {
                self.d_weight.group(edges.clone());
            }
            // Products are summed in blocks of 128 columns on every instruction set, so that bits do not depend on it.
            // If the registers cannot hold the sums of such a block as well, the two gradients are computed in two
            // loops.
            if WIDE >= 8 {
                for_blocks!(width, 8, |col, keep, N, K| {
                    let mut acc = [Lanes::<T::Acc, N>::splat(T::Acc::ZERO); K];
                    let own = own::<T, N, K>(lhs, u * width + col);
                    if !R::ADDS {
                        self.d_weight.pass(layout.entries(col, N * K));
                    }
                    for p in edges.clone() {
                        if col == 0 {
                            fetch(
                                self.product,
                                self.d_weight,
                                p,
                                ahead,
                                N * K >= WIDE_ROW && from_memory,
                            );
                        }
                        let (v, id) = (rows.indices[p] as usize, rows.edge_id(p));
                        let row = &grad[v * width + col..][..N * K];
                        if let Some(weight) = weight {
                            let part = layout.part(weight, id, width, col, N * K);
                            each!(k < K, {
                                acc[k] = acc[k].add(
                                    Lanes::load(row, N * k).mul(R::lanes::<T, N>(part, N * k)),
                                );
                            });
                        }
                        let mut products = own;
                        each!(k < K, {
                            products[k] = own[k].mul(Lanes::load(row, N * k));
                        });
                        layout.write::<T, N, K>(self.d_weight, p, products, col, keep);
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
                            fetch(
                                self.product,
                                self.d_weight,
                                p,
                                ahead,
                                N * K >= WIDE_ROW && from_memory,
                            );
                        }
                        let (v, id) = (rows.indices[p] as usize, rows.edge_id(p));
                        let row = &grad[v * width + col..][..N * K];
                        let part = layout.part(weight, id, width, col, N * K);
                        each!(k < K, {
                            acc[k] = acc[k]
                                .add(Lanes::load(row, N * k).mul(R::lanes::<T, N>(part, N * k)));
                        });
                    }
                }
                put(self.out, acc, keep);
            });
            for_blocks!(width, 8, |col, keep, N, K| {
                let own = own::<T, N, K>(lhs, u * width + col);
                if !R::ADDS {
                    self.d_weight.pass(layout.entries(col, N * K));
                }
                for p in edges.clone() {
                    let v = rows.indices[p] as usize;
                    let row = &grad[v * width + col..][..N * K];
                    let mut products = own;
                    each!(k < K, {
                        products[k] = own[k].mul(Lanes::load(row, N * k));
                    });
                    layout.write::<T, N, K>(self.d_weight, p, products, col, keep);
                }
            });
        }
    }
}

/// Prefetches the rows that the edge at position `p` reads, and the row that it writes: that row is at a random address,
/// and a store waits for its cache line.
///
/// This is not a closure, because a closure that is called in two places is not inlined, and the call would spill the
/// sums.
#[inline(always)]
fn fetch<T: Elem, R: Reduced>(
    product: &Product<'_, T, R>,
    d_weight: &EdgeRows<'_, R::Entry<T>>,
    p: usize,
    ahead: usize,
    from_memory: bool,
) {
    if from_memory {
        fetch_to(Cache::Second, product, d_weight, p + FAR * ahead);
    }
    fetch_to(Cache::First, product, d_weight, p + ahead);
}

/// Prefetches into a level of the cache.
#[inline(always)]
fn fetch_to<T: Elem, R: Reduced>(
    to: Cache,
    product: &Product<'_, T, R>,
    d_weight: &EdgeRows<'_, R::Entry<T>>,
    p: usize,
) {
    let Product { rows, grad, weight, layout, width, .. } = *product;
    let Some(&v) = rows.indices.get(p) else { return };
    prefetch_to(to, grad, v as usize * width, width);
    let (id, len) = (rows.edge_id(p), layout.len(width));
    if len < 16 {
        d_weight.prefetch_to(to, id, 0, len);
    }
    if let Some(weight) = weight {
        layout.fetch(to, weight, id, width);
    }
}

/// The block of the row of the source that starts at entry `at`.
#[inline(always)]
fn own<T: Elem, const N: usize, const K: usize>(lhs: &[T], at: usize) -> [Lanes<T::Acc, N>; K] {
    let row = &lhs[at..][..N * K];
    let mut lanes = [Lanes::splat(T::Acc::ZERO); K];
    each!(k < K, {
        lanes[k] = Lanes::load(row, N * k);
    });
    lanes
}
