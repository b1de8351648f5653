//! Relational aggregation on slices.
//!
//! ```text
//! parallel for runs of blocks of rows:
//!   for group (relation r, pairs) of the block:
//!     for up to TILE pairs (r, row):
//!       tile[pair] = Σ over the pair's edges of scale[e] · from[other end]
//!     block[row] += tile · W_r          four rows by 16 columns at a time, sums in registers
//!     d W_r += own[row]ᵀ · tile         (gradients)
//!   write the block's rows
//! ```
//! Between the gather and the write nothing leaves the caches: what moves is one row per edge, the index,
//! and the result. The gradient is the same walk from the other side: `from` is the gradient of the
//! result, `own` the input, the weights transposed.
//!
//! Sums of a row run by relation, then edge id, and do not depend on how rows are cut into runs. Sums of
//! weights run inside a run of blocks, then over runs; there the cut depends on the index and on the
//! widths, never on the number of threads.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use super::side::Side;
use crate::kernel::{Sink, Vectorised, collect_rows, prefetch, vectorised};
use crate::typed::dense::{LANES, Panels, outer, padded, product};
use crate::typed::real::Real;

/// Pairs summed before they are multiplied.
const TILE: usize = 32;
/// Edges between asking for a row and adding it.
const AHEAD: usize = 16;

/// One walk over a side.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a, A> {
    pub(crate) side: &'a Side,
    /// Rows to gather, `blocks · k` wide.
    pub(crate) from: &'a [A],
    /// Row of `from` for each edge position.
    pub(crate) at: &'a [u32],
    /// Factor of each edge position.
    pub(crate) scale: Option<&'a [A]>,
    /// Whether the sum of a pair is divided by its number of edges.
    pub(crate) average: bool,
    /// Matrices on the diagonal of a weight.
    pub(crate) blocks: usize,
    /// Rows of each.
    pub(crate) k: usize,
    /// Columns of each.
    pub(crate) n: usize,
}

/// Sums for the gradient of weights.
pub(crate) struct Weights<'a, A> {
    /// Rows of the side, `blocks · n` wide.
    pub(crate) own: &'a [A],
    pub(crate) num_relations: usize,
}

/// The gradient of weights over one run of blocks, for the relations that occur in it.
struct Partial<A> {
    /// Place of each relation, `u32::MAX` if it has none.
    slots: Vec<u32>,
    sums: Vec<A>,
}

/// What a thread needs beside the result.
struct Scratch<A> {
    tile: Vec<A>,
    own: Vec<A>,
    block: Vec<A>,
}

impl<A: Real> Walk<'_, A> {
    fn width(&self) -> usize {
        self.blocks * self.k
    }

    /// Rows of the side: `Σ pair · W`; without panels pairs are added as they are. And the gradient of the
    /// weights, `[num_relations, blocks, n, k]`, if `weights` are given; without `write` only that.
    pub(crate) fn run(&self, panels: Option<&Panels<A>>, weights: Option<&Weights<'_, A>>, write: bool) -> (Vec<A>, Vec<A>) {
        let side = self.side;
        let per_pair = self.blocks * self.k * padded(self.n) / LANES;
        let work = side.others.len().saturating_mul(self.width()).saturating_add(side.num_pairs().saturating_mul(per_pair));
        let runs = side.runs(match weights {
            None => (work >> 18).clamp(1, 8 * rayon::current_num_threads()),
            Some(w) => {
                let entries = w.num_relations.saturating_mul(self.blocks * self.n * padded(self.k)).max(1);
                (work >> 19).clamp(1, 64).min(((1 << 26) / entries).max(4))
            }
        });
        let rows: Vec<_> = runs.iter().map(|r| side.block_rows[r.start] as usize..side.block_rows[r.end] as usize).collect();
        let partials: Vec<OnceLock<Partial<A>>> = runs.iter().map(|_| OnceLock::new()).collect();
        let width = if write { self.blocks * self.n } else { 0 };
        let out = collect_rows::<A>(&rows, width, &|run, sink| {
            let number = rows.partition_point(|r| r.end <= run.start);
            let mut scratch = Scratch { tile: Vec::new(), own: Vec::new(), block: Vec::new() };
            let mut partial = weights.map(|w| self.partial(runs[number].clone(), w));
            for block in runs[number].clone() {
                let sums = weights.zip(partial.as_mut());
                let body = Body { walk: self, block, panels, sums, write, scratch: &mut scratch };
                vectorised(body);
                if write {
                    self.put(block, &scratch.block, sink);
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

    fn partial(&self, run: Range<usize>, weights: &Weights<'_, A>) -> Partial<A> {
        let mut slots = vec![u32::MAX; weights.num_relations];
        let mut found = 0;
        for block in run {
            for (relation, _) in self.side.groups_of(block) {
                if slots[relation] == u32::MAX {
                    slots[relation] = found;
                    found += 1;
                }
            }
        }
        Partial { slots, sums: vec![A::ZERO; found as usize * self.blocks * self.n * padded(self.k)] }
    }

    /// Partial sums added in the order of runs, without the padding.
    fn combine(&self, partials: &[OnceLock<Partial<A>>], weights: &Weights<'_, A>) -> Vec<A> {
        let (rows, stride) = (self.blocks * self.n, padded(self.k));
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

    fn put(&self, block: usize, rows: &[A], sink: &mut Sink<'_, A>) {
        let stride = padded(self.n);
        if stride == self.n {
            sink.put(&rows[..self.side.rows_of(block).len() * self.blocks * stride]);
            return;
        }
        for row in rows[..self.side.rows_of(block).len() * self.blocks * stride].chunks_exact(stride.max(1)) {
            sink.put(&row[..self.n]);
        }
    }

    #[inline(always)]
    fn block(
        &self,
        block: usize,
        panels: Option<&Panels<A>>,
        mut sums: Option<(&Weights<'_, A>, &mut Partial<A>)>,
        write: bool,
        scratch: &mut Scratch<A>,
    ) {
        let (width, stride) = (self.width(), self.blocks * padded(self.n));
        let (rows, own_width) = (self.side.rows_of(block), self.blocks * self.n);
        // Panels of the last columns of a tile's last row may be read past its end.
        scratch.tile.resize(TILE * width + LANES, A::ZERO);
        if write {
            scratch.block.clear();
            scratch.block.resize(rows.len() * stride, A::ZERO);
        }
        let Scratch { tile, own, block: result } = scratch;
        for (relation, pairs) in self.side.groups_of(block) {
            let mut at = pairs.start;
            while at < pairs.end {
                let pairs = at..(at + TILE).min(pairs.end);
                at = pairs.end;
                for (pair, to) in pairs.clone().zip(tile.chunks_exact_mut(width.max(1))) {
                    self.gather(pair, to);
                }
                let owners = &self.side.pair_rows[pairs.clone()];
                if write {
                    match panels {
                        Some(panels) => self.multiply(panels, relation, tile, owners, rows.start, result),
                        None => {
                            for (from, &row) in tile.chunks_exact(width.max(1)).zip(owners) {
                                let to = &mut result[(row as usize - rows.start) * stride..][..width];
                                to.iter_mut().zip(from).for_each(|(t, &f)| *t += f);
                            }
                        }
                    }
                }
                if let Some((weights, partial)) = &mut sums {
                    own.clear();
                    owners.iter().for_each(|&row| own.extend_from_slice(&weights.own[row as usize * own_width..][..own_width]));
                    let size = self.blocks * self.n * padded(self.k);
                    let to = &mut partial.sums[partial.slots[relation] as usize * size..][..size];
                    self.accumulate(own, tile, owners.len(), to);
                }
            }
        }
    }

    /// Adds `tile · W` to the rows of the block that begins at row `first`.
    #[inline(always)]
    fn multiply(&self, panels: &Panels<A>, relation: usize, tile: &[A], owners: &[u32], first: usize, result: &mut [A]) {
        let (width, k) = (self.width(), self.k);
        let stride = self.blocks * panels.stride;
        for b in 0..self.blocks {
            for (c, panel) in panels.matrix(relation * self.blocks + b).chunks_exact(k * LANES).enumerate() {
                let column = b * panels.stride + c * LANES;
                let mut add = |row: u32, sum: &[A; LANES]| {
                    let to = &mut result[(row as usize - first) * stride + column..][..LANES];
                    to.iter_mut().zip(sum).for_each(|(t, &s)| *t += s);
                };
                let row = |m: usize| &tile[m * width + b * k..][..k];
                let mut m = 0;
                while m + 4 <= owners.len() {
                    let sums = product([row(m), row(m + 1), row(m + 2), row(m + 3)], panel);
                    for i in 0..4 {
                        add(owners[m + i], &sums[i]);
                    }
                    m += 4;
                }
                while m < owners.len() {
                    add(owners[m], &product([row(m)], panel)[0]);
                    m += 1;
                }
            }
        }
    }

    /// Adds `ownᵀ · tile` to the sums of one relation.
    #[inline(always)]
    fn accumulate(&self, own: &[A], tile: &[A], count: usize, sums: &mut [A]) {
        let (left, right, stride) = (self.blocks * self.n, self.width(), padded(self.k));
        for b in 0..self.blocks {
            for c in (0..self.k).step_by(LANES) {
                let right_from = &tile[b * self.k + c..];
                let mut i = 0;
                while i + 4 <= self.n {
                    let row = b * self.n + i;
                    outer::<A, 4>(&own[row..], right_from, [left, right], count, &mut sums[row * stride + c..], stride);
                    i += 4;
                }
                while i < self.n {
                    let row = b * self.n + i;
                    outer::<A, 1>(&own[row..], right_from, [left, right], count, &mut sums[row * stride + c..], stride);
                    i += 1;
                }
            }
        }
    }

    /// The sum of a pair.
    #[inline(always)]
    fn gather(&self, pair: usize, to: &mut [A]) {
        let (width, edges) = (self.width(), self.side.edges_of(pair));
        for p in edges.clone() {
            if let Some(&next) = self.at.get(p + AHEAD) {
                prefetch(self.from, next as usize * width, width);
            }
        }
        let mut from = 0;
        while from + 64 <= width {
            self.columns::<64>(edges.clone(), from, to);
            from += 64;
        }
        // The last columns begin before the end of those already done: the same sums once more.
        match width {
            16.. => self.rest::<16>(edges, from, to),
            8.. => self.rest::<8>(edges, from, to),
            4.. => self.rest::<4>(edges, from, to),
            _ => self.rest::<1>(edges, from, to),
        }
    }

    #[inline(always)]
    fn rest<const C: usize>(&self, edges: Range<usize>, from: usize, to: &mut [A]) {
        let width = self.width();
        let mut from = from;
        while from < width {
            self.columns::<C>(edges.clone(), from.min(width - C), to);
            from += C;
        }
    }

    #[inline(always)]
    fn columns<const C: usize>(&self, edges: Range<usize>, from: usize, to: &mut [A]) {
        let width = self.width();
        let row = |u: u32| -> &[A; C] {
            let row = &self.from[u as usize * width + from..][..C];
            // SAFETY: the slice has `C` entries.
            unsafe { &*row.as_ptr().cast() }
        };
        let mut acc = [A::ZERO; C];
        match self.scale {
            None => {
                for &u in &self.at[edges.clone()] {
                    for (a, &x) in acc.iter_mut().zip(row(u)) {
                        *a += x;
                    }
                }
            }
            Some(scale) => {
                for (&u, &s) in self.at[edges.clone()].iter().zip(&scale[edges.clone()]) {
                    for (a, &x) in acc.iter_mut().zip(row(u)) {
                        *a += s * x;
                    }
                }
            }
        }
        if self.average {
            let count = A::count(edges.len() as u32);
            acc.iter_mut().for_each(|a| *a = *a / count);
        }
        to[from..from + C].copy_from_slice(&acc);
    }
}

struct Body<'r, 'a, A> {
    walk: &'r Walk<'a, A>,
    block: usize,
    panels: Option<&'r Panels<A>>,
    sums: Option<(&'r Weights<'a, A>, &'r mut Partial<A>)>,
    write: bool,
    scratch: &'r mut Scratch<A>,
}

impl<A: Real> Vectorised for Body<'_, '_, A> {
    type Out = ();
    #[inline(always)]
    fn run(self) {
        self.walk.block(self.block, self.panels, self.sums, self.write, self.scratch);
    }
}
