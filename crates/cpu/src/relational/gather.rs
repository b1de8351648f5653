//! Sums the edges of (relation, row) pairs. Entries are widened as they are read.

use std::ops::Range;

use super::grouped_edges::GroupedEdges;
use crate::number::Elem;
use crate::number::Real;
use crate::parallel::collect::collect_rows;
use crate::parallel::runs::evenly;
use burn_gnn_structure::internal::prefetch;

/// How many edges ahead rows are prefetched.
const AHEAD: usize = 16;
/// Width of the widest rows that are summed in one loop over the edges of all pairs.
const FLAT_WIDTH: usize = 16;
/// Edges per pair from which a loop per pair is faster, because its end is mispredicted less often.
const FLAT_EDGES: usize = 6;

/// The rows to gather, and how.
pub(super) struct Gather<'a, T: Elem> {
    grouped: &'a GroupedEdges,
    from: &'a [T],
    at: &'a [u32],
    scale: Option<&'a [T::Acc]>,
    average: bool,
    width: usize,
    is_flat: bool,
    /// Entries between the starts of rows, in `from` and in a tile.
    pub(super) stride: usize,
}

fn is_flat(grouped: &GroupedEdges, width: usize) -> bool {
    width <= FLAT_WIDTH && grouped.num_edges() < FLAT_EDGES * grouped.num_pairs()
}

impl<'a, A: Real, T: Elem<Acc = A>> Gather<'a, T> {
    /// Pads rows of `width` entries with zeros to a power of two, so that no row of up to 64 bytes crosses a cache line.
    /// `None` if [`new`](Self::new) takes the rows as they are.
    pub(super) fn pad(grouped: &GroupedEdges, from: &[T], width: usize) -> Option<Vec<T>> {
        let stride = width.next_power_of_two();
        if stride == width || !is_flat(grouped, width) {
            return None;
        }
        Some(collect_rows(&evenly(from.len() / width, stride), stride, &|run, sink| {
            for row in from[run.start * width..run.end * width].chunks_exact(width) {
                sink.put_from(stride, |j| if j < width { row[j] } else { T::zeroed() });
            }
        }))
    }

    /// `from` is rows of `width` entries, or the result of [`pad`](Self::pad).
    pub(super) fn new(
        grouped: &'a GroupedEdges,
        from: &'a [T],
        at: &'a [u32],
        scale: Option<&'a [A]>,
        average: bool,
        width: usize,
    ) -> Self {
        let is_flat = is_flat(grouped, width);
        let stride = if is_flat { width.next_power_of_two() } else { width };
        Self { grouped, from, at, scale, average, width, is_flat, stride }
    }

    /// Writes the sums of `pairs` to the first rows of `tile`.
    #[inline(always)]
    pub(super) fn tile(&self, pairs: Range<usize>, tile: &mut [A]) {
        if self.is_flat {
            match self.stride {
                16 => self.flat::<16>(pairs.clone(), tile),
                8 => self.flat::<8>(pairs.clone(), tile),
                4 => self.flat::<4>(pairs.clone(), tile),
                2 => self.flat::<2>(pairs.clone(), tile),
                _ => self.flat::<1>(pairs.clone(), tile),
            }
        } else {
            for (pair, to) in pairs.clone().zip(tile.chunks_exact_mut(self.stride)) {
                for p in self.grouped.edges_of(pair) {
                    if let Some(&next) = self.at.get(p + AHEAD) {
                        prefetch(self.from, next as usize * self.stride, self.width);
                    }
                }
                self.pair(pair, to);
            }
        }
        if self.average {
            for (pair, to) in pairs.zip(tile.chunks_exact_mut(self.stride)) {
                let share = A::ONE / A::count(self.grouped.edges_of(pair).len() as u32);
                to.iter_mut().for_each(|t| *t = *t * share);
            }
        }
    }

    /// One loop over all edges, which adds each to the row of its pair.
    #[inline(always)]
    fn flat<const C: usize>(&self, pairs: Range<usize>, tile: &mut [A]) {
        tile[..pairs.len() * C].fill(A::ZERO);
        let edges = self.grouped.edges_between(&pairs);
        let (at, of) = (&self.at[edges.clone()], &self.grouped.pairs()[edges.clone()]);
        let ahead = &self.at[(edges.start + AHEAD).min(self.at.len())..];
        for (i, (&u, &pair)) in at.iter().zip(of).enumerate() {
            if let Some(&next) = ahead.get(i) {
                prefetch(self.from, next as usize * C, C);
            }
            let row = &self.from[u as usize * C..][..C];
            let to = &mut tile[(pair as usize - pairs.start) * C..][..C];
            match self.scale {
                None => to.iter_mut().zip(row).for_each(|(t, x)| *t += x.acc()),
                Some(scale) => {
                    let s = scale[edges.start + i];
                    to.iter_mut().zip(row).for_each(|(t, x)| *t += s * x.acc());
                }
            }
        }
    }

    /// The sum of one pair, a block of columns at a time in registers.
    #[inline(always)]
    fn pair(&self, pair: usize, to: &mut [A]) {
        let (width, edges) = (self.width, self.grouped.edges_of(pair));
        let mut from = 0;
        while from + 64 <= width {
            self.columns::<64>(edges.clone(), from, to);
            from += 64;
        }
        // The last block overlaps with the previous one, and computes the same sums again.
        match width {
            16.. => self.rest::<16>(edges, from, to),
            4.. => self.rest::<4>(edges, from, to),
            _ => self.rest::<1>(edges, from, to),
        }
    }

    #[inline(always)]
    fn rest<const C: usize>(&self, edges: Range<usize>, from: usize, to: &mut [A]) {
        let mut from = from;
        while from < self.width {
            self.columns::<C>(edges.clone(), from.min(self.width - C), to);
            from += C;
        }
    }

    #[inline(always)]
    fn columns<const C: usize>(&self, edges: Range<usize>, from: usize, to: &mut [A]) {
        let row = |u: u32| &self.from[u as usize * self.stride + from..][..C];
        let mut acc = [A::ZERO; C];
        match self.scale {
            None => {
                for &u in &self.at[edges] {
                    acc.iter_mut().zip(row(u)).for_each(|(a, x)| *a += x.acc());
                }
            }
            Some(scale) => {
                for (&u, &s) in self.at[edges.clone()].iter().zip(&scale[edges]) {
                    acc.iter_mut().zip(row(u)).for_each(|(a, x)| *a += s * x.acc());
                }
            }
        }
        to[from..from + C].copy_from_slice(&acc);
    }
}
