//! The walk over grouped edges that the parent module describes, forward and backward.
//!
//! Rows of f16 and bf16 are widened as they are gathered, summed in f32, and rounded when the result is written.
//!
//! The sum of a row runs by relation, then by edge id, and does not depend on how rows are split into runs. The gradient
//! of the weights is summed inside of each run of blocks, then over runs. The split depends on the index and on the
//! widths, but not on the number of threads, so bits do not either.

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

/// Number of pairs that are summed before they are multiplied.
const TILE: usize = 64;

/// The inputs of one walk over grouped edges.
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
    /// Number of matrices on the diagonal of a weight.
    pub(super) blocks: usize,
    /// Rows of each matrix.
    pub(super) k: usize,
    /// Columns of each matrix.
    pub(super) n: usize,
}

/// The inputs of the gradient of weights.
pub(super) struct Weights<'a, T> {
    /// Rows of the grouped endpoint, `blocks · n` entries each.
    pub(super) own: &'a [T],
    pub(super) num_relations: usize,
}

/// The gradient of weights over one run of blocks, for the relations that occur in it.
struct Partial<A> {
    /// Index into `sums` of each relation; `u32::MAX` if the run has no edges of it.
    slots: Vec<u32>,
    sums: Vec<A>,
}

/// Buffers of a thread.
struct Scratch<A> {
    /// Sums of the pairs of a tile.
    tile: Vec<A>,
    /// Widened rows of the grouped endpoint that belong to the pairs of the tile.
    own: Vec<A>,
    /// Products of the tile with a wide matrix.
    product: Vec<A>,
    /// Result rows of the block.
    block: Vec<A>,
}

impl<A: Real, T: Elem<Acc = A>> Walk<'_, T> {
    fn width(&self) -> usize {
        self.blocks * self.k
    }

    /// Returns the result rows of the grouped endpoint, `Σ pair · W` rounded to `O`, and the gradient of the weights,
    /// `[num_relations, blocks, n, k]`.
    ///
    /// Without `matrices`, pairs are summed without a product. Without `weights`, the gradient is empty. Without `write`,
    /// the result rows are empty.
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
                // Every run is visited once, so the cell is empty.
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

    /// Adds the partial sums in the order of runs, and removes the padding.
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
        // `LANES` more entries, because the last panel may read past the end of the last row.
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

    /// Adds `tile · W`, with the sums in registers.
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

    /// Adds `ownᵀ · tile` to the gradient of one relation's weights.
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
        // Narrow products read the rows in place if they need not be widened.
        let in_place = as_sums(all).filter(|_| is_narrow(n, k));
        if in_place.is_none() {
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
                let left = |m: usize, row: usize| match in_place {
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

/// The result rows of a block to which the pairs of a tile are added.
struct Rows<'r, A> {
    result: &'r mut [A],
    owners: &'r [u32],
    /// First row of the block.
    first: usize,
    stride: usize,
}

impl<A: Real> Rows<'_, A> {
    /// Adds `sum` to the row of pair `m`, starting at `column`.
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
