//! Computes relational aggregation on slices.
//!
//! ```text
//! parallel for runs of blocks of rows:
//!   for group (relation r, pairs) of the block:
//!     for up to TILE pairs (r, row):
//!       tile[pair] = Σ over the pair's edges of scale[e] · from[other endpoint]
//!       block[row] += tile · W_r        four rows by 16 columns at a time, sums in registers
//!       d W_r += own[row]ᵀ · tile       (gradients)
//!   write the block's rows
//! ```
//! Between the gather and the write nothing leaves the caches: what moves is one row per edge, the index,
//! and the result. The gradient is the same walk from the other side: `from` is the gradient of the
//! result, `own` the input, the weights transposed.
//!
//! Most pairs have one or two edges. A loop over the edges of each would mispredict its end every time,
//! which costs more than the edge itself; so narrow rows are added straight into the tile, edge after
//! edge, in one loop without a branch. Wide matrices are multiplied by `gemm`, a tile at a time.
//!
//! Rows of f16 and bf16 are widened as they are gathered and rounded when the result is written; sums between are
//! kept in f32.
//!
//! Sums of a row run by relation, then edge id, and do not depend on how rows are cut into runs. Sums of
//! weights run inside a run of blocks, then over runs; there the cut depends on the index and on the
//! widths, never on the number of threads.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::gather::Gather;
use super::grouped_edges::GroupedEdges;
use crate::dense::gemm::wide;
use crate::dense::small_products::{
    LANES, Matrices, Panels, is_narrow, outer, product, row_stride,
};
use crate::dense::widen::{as_sums, rounded};
use crate::number::Elem;
use crate::number::Real;
use crate::parallel::collect::collect_rows;
use crate::parallel::output_buffer::Sink;
use crate::simd::instruction_sets::{Vectorised, vectorised};

/// Pairs summed before they are multiplied.
const TILE: usize = 64;

/// One walk over grouped edges.
pub(super) struct Walk<'a, T: Elem> {
    pub(super) grouped: &'a GroupedEdges,
    /// Rows to gather, `blocks · k` entries each.
    pub(super) from: &'a [T],
    /// Row of `from` for each edge position.
    pub(super) at: &'a [u32],
    /// Factor of each edge position.
    pub(super) scale: Option<&'a [T::Acc]>,
    /// Whether the sum of a pair is divided by its number of edges.
    pub(super) average: bool,
    /// Matrices on the diagonal of a weight.
    pub(super) blocks: usize,
    /// Rows of each.
    pub(super) k: usize,
    /// Columns of each.
    pub(super) n: usize,
}

/// Sums for the gradient of weights.
pub(super) struct Weights<'a, T> {
    /// Rows of the grouped endpoint, `blocks · n` wide.
    pub(super) own: &'a [T],
    pub(super) num_relations: usize,
}

/// The gradient of weights over one run of blocks, for the relations that occur in it.
struct Partial<A> {
    /// Place of each relation, `u32::MAX` if it has none.
    slots: Vec<u32>,
    sums: Vec<A>,
}

/// What a thread needs beside the result.
struct Scratch<A> {
    /// Sums of pairs.
    tile: Vec<A>,
    /// Rows of the grouped endpoint that belong to them, where they are copied.
    own: Vec<A>,
    /// Wide products of the tile.
    product: Vec<A>,
    /// Rows of the block.
    block: Vec<A>,
}

impl<A: Real, T: Elem<Acc = A>> Walk<'_, T> {
    fn width(&self) -> usize {
        self.blocks * self.k
    }

    /// Rows of the grouped endpoint: `Σ pair · W`, rounded to `O`; without matrices pairs are added as they are.
    /// And the gradient of the weights, `[num_relations, blocks, n, k]`, if `weights` are given; without `write`
    /// only that.
    pub(super) fn run<O: Elem<Acc = A>>(
        &self,
        matrices: Option<&Matrices<'_, A>>,
        weights: Option<&Weights<'_, T>>,
        write: bool,
    ) -> (Vec<O>, Vec<A>) {
        let grouped = self.grouped;
        let per_pair = self.blocks * self.k * row_stride(self.k, self.n) / LANES;
        let work = grouped
            .num_edges()
            .saturating_mul(self.width())
            .saturating_add(grouped.num_pairs().saturating_mul(per_pair));
        let runs = grouped.runs(match weights {
            None => (work >> 18).clamp(1, 8 * rayon::current_num_threads()),
            Some(w) => {
                let entries = w
                    .num_relations
                    .saturating_mul(self.blocks * self.n * row_stride(self.n, self.k))
                    .max(1);
                (work >> 19).clamp(1, 64).min(((1 << 26) / entries).max(4))
            }
        });
        let rows: Vec<_> =
            runs.iter().map(|r| grouped.first_row(r.start)..grouped.first_row(r.end)).collect();
        let partials: Vec<OnceLock<Partial<A>>> = runs.iter().map(|_| OnceLock::new()).collect();
        let width = if write { self.blocks * self.n } else { 0 };
        let padded = Gather::pad(grouped, self.from, self.width());
        let gather = Gather::new(
            grouped,
            padded.as_deref().unwrap_or(self.from),
            self.at,
            self.scale,
            self.average,
            self.width(),
        );
        let out = collect_rows::<O>(&rows, width, &|run, sink| {
            let number = rows.partition_point(|r| r.end <= run.start);
            let mut scratch = Scratch {
                tile: Vec::new(),
                own: Vec::new(),
                product: Vec::new(),
                block: Vec::new(),
            };
            let mut out = Vec::new();
            let mut partial = weights.map(|w| self.partial(runs[number].clone(), w));
            for block in runs[number].clone() {
                let sums = weights.zip(partial.as_mut());
                vectorised(Body {
                    walk: self,
                    gather: &gather,
                    block,
                    matrices,
                    sums,
                    write,
                    scratch: &mut scratch,
                });
                if write {
                    self.put(block, rounded(&scratch.block, &mut out), sink);
                }
            }
            if let Some(partial) = partial {
                // Every run is visited once, so the place is free.
                let _ = partials[number].set(partial);
            }
        });
        let sums = weights.map_or_else(Vec::new, |w| self.combine(&partials, w));
        (out, sums)
    }

    fn partial(&self, run: Range<usize>, weights: &Weights<'_, T>) -> Partial<A> {
        let mut slots = vec![u32::MAX; weights.num_relations];
        let mut found = 0;
        for block in run {
            for (relation, _) in self.grouped.groups_of(block) {
                if slots[relation] == u32::MAX {
                    slots[relation] = found;
                    found += 1;
                }
            }
        }
        Partial {
            slots,
            sums: vec![A::ZERO; found as usize * self.blocks * self.n * row_stride(self.n, self.k)],
        }
    }

    /// Partial sums added in the order of runs, without the padding.
    fn combine(&self, partials: &[OnceLock<Partial<A>>], weights: &Weights<'_, T>) -> Vec<A> {
        let (rows, stride) = (self.blocks * self.n, row_stride(self.n, self.k));
        let size = rows * self.k;
        let mut out = vec![A::ZERO; weights.num_relations * size];
        if size == 0 {
            return out;
        }
        let one = |(relation, out): (usize, &mut [A])| {
            for partial in partials.iter().filter_map(OnceLock::get) {
                let slot = partial.slots[relation];
                if slot == u32::MAX {
                    continue;
                }
                let from = &partial.sums[slot as usize * rows * stride..][..rows * stride];
                for (to, from) in out.chunks_exact_mut(self.k).zip(from.chunks_exact(stride)) {
                    to.iter_mut().zip(from).for_each(|(t, &f)| *t += f);
                }
            }
        };
        if out.len().saturating_mul(partials.len()) < 1 << 18 {
            out.chunks_exact_mut(size).enumerate().for_each(one);
        } else {
            out.par_chunks_exact_mut(size).enumerate().for_each(one);
        }
        out
    }

    fn put<O: Elem>(&self, block: usize, rows: &[O], sink: &mut Sink<'_, O>) {
        let stride = row_stride(self.k, self.n);
        let rows = &rows[..self.grouped.rows_of(block).len() * self.blocks * stride];
        if stride == self.n {
            return sink.put(rows);
        }
        rows.chunks_exact(stride).for_each(|row| sink.put(&row[..self.n]));
    }

    #[inline(always)]
    fn block(
        &self,
        gather: &Gather<'_, T>,
        block: usize,
        matrices: Option<&Matrices<'_, A>>,
        mut sums: Option<(&Weights<'_, T>, &mut Partial<A>)>,
        write: bool,
        scratch: &mut Scratch<A>,
    ) {
        let (width, stride, rows) =
            (gather.stride, self.blocks * row_stride(self.k, self.n), self.grouped.rows_of(block));
        // Panels of the last columns of a tile's last row may be read past its end.
        scratch.tile.resize(TILE * width + LANES, A::ZERO);
        if write {
            scratch.block.clear();
            scratch.block.resize(rows.len() * stride, A::ZERO);
        }
        let Scratch { tile, own, product, block: result } = scratch;
        for (relation, pairs) in self.grouped.groups_of(block) {
            let mut at = pairs.start;
            while at < pairs.end {
                let pairs = at..(at + TILE).min(pairs.end);
                at = pairs.end;
                gather.tile(pairs.clone(), tile);
                let owners = &self.grouped.pair_rows()[pairs];
                if write {
                    let to = Rows { result, owners, first: rows.start, stride };
                    match matrices {
                        Some(Matrices::Narrow(panels)) => {
                            self.multiply(panels, relation, (tile, width), to)
                        }
                        Some(Matrices::Wide { b, transposed }) => {
                            self.multiply_wide(b, *transposed, relation, (tile, width), product, to)
                        }
                        None => tile.chunks_exact(width).take(owners.len()).enumerate().for_each({
                            let mut to = to;
                            move |(m, from)| to.add(m, 0, &from[..self.n])
                        }),
                    }
                }
                if let Some((weights, partial)) = &mut sums {
                    let size = self.blocks * self.n * row_stride(self.n, self.k);
                    let to = &mut partial.sums[partial.slots[relation] as usize * size..][..size];
                    self.accumulate(weights.own, owners, (tile, width), own, to);
                }
            }
        }
    }

    /// Adds `tile · W` in registers.
    #[inline(always)]
    fn multiply(
        &self,
        panels: &Panels<A>,
        relation: usize,
        (tile, width): (&[A], usize),
        mut to: Rows<'_, A>,
    ) {
        let (k, count) = (self.k, to.owners.len());
        for b in 0..self.blocks {
            for (c, panel) in
                panels.matrix(relation * self.blocks + b).chunks_exact(k * LANES).enumerate()
            {
                let column = b * panels.stride + c * LANES;
                let row = |m: usize| &tile[m * width + b * k..][..k];
                let mut m = 0;
                while m + 4 <= count {
                    let sums = product([row(m), row(m + 1), row(m + 2), row(m + 3)], panel);
                    for (i, sum) in sums.iter().enumerate() {
                        to.add(m + i, column, sum);
                    }
                    m += 4;
                }
                while m < count {
                    to.add(m, column, &product([row(m)], panel)[0]);
                    m += 1;
                }
            }
        }
    }

    /// Adds `tile · W` by `gemm`.
    fn multiply_wide(
        &self,
        weight: &[A],
        transposed: bool,
        relation: usize,
        (tile, width): (&[A], usize),
        product: &mut Vec<A>,
        mut to: Rows<'_, A>,
    ) {
        let (k, n, count) = (self.k, self.n, to.owners.len());
        product.resize(TILE * n, A::ZERO);
        for b in 0..self.blocks {
            let w = &weight[(relation * self.blocks + b) * k * n..][..k * n];
            let by = if transposed { [1, k] } else { [n, 1] };
            wide([count, n, k], (&tile[b * k..], [width, 1]), (w, by), (product, n), false);
            product
                .chunks_exact(n)
                .take(count)
                .enumerate()
                .for_each(|(m, row)| to.add(m, b * n, row));
        }
    }

    /// Adds `ownᵀ · tile` to the sums of one relation.
    #[inline(always)]
    fn accumulate(
        &self,
        all: &[T],
        owners: &[u32],
        (tile, width): (&[A], usize),
        own: &mut Vec<A>,
        sums: &mut [A],
    ) {
        let (n, k, own_width, stride) =
            (self.n, self.k, self.blocks * self.n, row_stride(self.n, self.k));
        // Products in registers read rows where they stand, if they need not be widened.
        let standing = as_sums(all).filter(|_| is_narrow(n, k));
        if standing.is_none() {
            own.clear();
            owners.iter().for_each(|&row| {
                own.extend(all[row as usize * own_width..][..own_width].iter().map(|x| x.acc()))
            });
        }
        if !is_narrow(n, k) {
            for b in 0..self.blocks {
                let left = (&own[b * n..], [1, own_width]);
                wide(
                    [n, k, owners.len()],
                    left,
                    (&tile[b * k..], [width, 1]),
                    (&mut sums[b * n * stride..], stride),
                    true,
                );
            }
            return;
        }
        for b in 0..self.blocks {
            for c in (0..k).step_by(LANES) {
                let right = (&tile[b * k + c..], width);
                let mut i = 0;
                let left = |m: usize, row: usize| match standing {
                    Some(all) => &all[owners[m] as usize * own_width + row..],
                    None => &own[m * own_width + row..],
                };
                while i + 4 <= n {
                    let row = b * n + i;
                    outer::<A, 4>(
                        |m| left(m, row),
                        right,
                        owners.len(),
                        (&mut sums[row * stride + c..], stride),
                    );
                    i += 4;
                }
                while i < n {
                    let row = b * n + i;
                    outer::<A, 1>(
                        |m| left(m, row),
                        right,
                        owners.len(),
                        (&mut sums[row * stride + c..], stride),
                    );
                    i += 1;
                }
            }
        }
    }
}

/// Rows of a block's result that belong to the pairs of a tile.
struct Rows<'r, A> {
    result: &'r mut [A],
    owners: &'r [u32],
    /// First row of the block.
    first: usize,
    stride: usize,
}

impl<A: Real> Rows<'_, A> {
    /// Adds to the row of pair `m` from `column` on.
    #[inline(always)]
    fn add(&mut self, m: usize, column: usize, sum: &[A]) {
        let to = &mut self.result[(self.owners[m] as usize - self.first) * self.stride + column..]
            [..sum.len()];
        to.iter_mut().zip(sum).for_each(|(t, &s)| *t += s);
    }
}

struct Body<'r, 'a, T: Elem> {
    walk: &'r Walk<'a, T>,
    gather: &'r Gather<'r, T>,
    block: usize,
    matrices: Option<&'r Matrices<'r, T::Acc>>,
    sums: Option<(&'r Weights<'a, T>, &'r mut Partial<T::Acc>)>,
    write: bool,
    scratch: &'r mut Scratch<T::Acc>,
}

impl<A: Real, T: Elem<Acc = A>> Vectorised for Body<'_, '_, T> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        self.walk.block(
            self.gather,
            self.block,
            self.matrices,
            self.sums,
            self.write,
            self.scratch,
        );
    }
}
