//! Gathers contiguous rows from memory or a mapped file, on all threads.

use std::mem::MaybeUninit;

use rayon::prelude::*;

use crate::features::row_type::RowType;
use crate::features::source::FeatureSource;
use crate::features::source::check_sources;
use burn_gnn_graph::internal::check_ids;
use burn_gnn_graph::internal::prefetch;
use burn_gnn_graph::{Compressed, GraphError, Relation};

/// Contiguous rows, at the start of `bytes`.
#[derive(Clone, Debug)]
pub(crate) struct Packed<B> {
    pub(crate) bytes: B,
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) kept: RowType,
}

/// Prefetch distance in rows: a few thousand bytes in flight. Of 2 to 32, distances of 8 and 16 were fastest.
const AHEAD: usize = 8;
/// Rows per parallel task.
const RUN: usize = 256;
/// Up to this number of values a gather runs on one thread. Smaller under Miri, so that it executes both paths.
const ALONE: usize = if cfg!(miri) { 1 << 10 } else { 1 << 16 };

impl<B: AsRef<[u8]> + Send + Sync> FeatureSource for Packed<B> {
    fn num_rows(&self) -> usize {
        self.rows
    }
    fn width(&self) -> usize {
        self.width
    }
    #[expect(unsafe_code, reason = "numbers as memory that may not be initialised")]
    fn read_rows(&self, ids: &[u32], out: &mut [f32]) -> Result<(), GraphError> {
        // SAFETY: the layout is the same, and `write` stores no uninitialised entry.
        self.write(ids, unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<f32>]) });
        Ok(())
    }
    #[expect(unsafe_code, reason = "memory is written once")]
    fn gather(&self, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_ids("ids", "the features", ids, self.rows)?;
        let len = ids.len() * self.width;
        let mut out = Vec::with_capacity(len);
        self.write(ids, &mut out.spare_capacity_mut()[..len]);
        // SAFETY: there is room for `len` entries, and `write` has written every one of them.
        unsafe { out.set_len(len) };
        Ok(out)
    }
    fn gather_mean(&self, relation: &Relation, ids: &[u32]) -> Result<Vec<f32>, GraphError> {
        check_sources(relation, ids, self.rows)?;
        relation.read_stored()?;
        let (by_dst, bytes) = (relation.csc(), self.bytes.as_ref());
        let (width, kept, size) = (self.width, self.kept, self.width * self.kept.bytes());
        let mut out = vec![0.0; by_dst.num_rows() * width];
        if width == 0 {
            return Ok(out);
        }
        let sources = by_dst.indices();
        let run = |(first, out): (usize, &mut [f32])| {
            let mut row = vec![0.0; width];
            for (v, sum) in (first..).zip(out.chunks_exact_mut(width)) {
                let edges = by_dst.row(v);
                let count = edges.len() as f32;
                for position in edges {
                    if let Some(&next) = sources.get(position + AHEAD) {
                        prefetch(bytes, ids[next as usize] as usize * size, size);
                    }
                    let id = ids[sources[position] as usize] as usize;
                    widen(kept, &bytes[id * size..][..size], &mut row);
                    sum.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x);
                }
                if count > 1.0 {
                    sum.iter_mut().for_each(|sum| *sum /= count);
                }
            }
        };
        if sources.len() * width < ALONE {
            run((0, &mut out));
        } else {
            let pieces = split_by_edges(by_dst, &mut out, width);
            pieces.into_par_iter().for_each(run);
        }
        Ok(out)
    }
}

impl<B: AsRef<[u8]>> Packed<B> {
    /// Writes all `ids.len() · width` entries of `out`, in parallel if there are many. `out` is uninitialised memory:
    /// filling it with zeros first would take as long as reading the rows.
    fn write(&self, ids: &[u32], out: &mut [MaybeUninit<f32>]) {
        let (bytes, width, kept) = (self.bytes.as_ref(), self.width, self.kept);
        assert_eq!(out.len(), ids.len() * width, "room for every row");
        if width == 0 {
            return;
        }
        let size = width * kept.bytes();
        let run = |(ids, out): (&[u32], &mut [MaybeUninit<f32>])| {
            for (i, (&id, out)) in ids.iter().zip(out.chunks_exact_mut(width)).enumerate() {
                if let Some(&next) = ids.get(i + AHEAD) {
                    prefetch(bytes, next as usize * size, size);
                }
                kept.widen(&bytes[id as usize * size..][..size], out);
            }
        };
        if ids.len() * width < ALONE {
            run((ids, out));
        } else {
            ids.par_chunks(RUN).zip(out.par_chunks_mut(RUN * width)).for_each(run);
        }
    }
}

/// Converts the bytes of one row to f32.
#[expect(unsafe_code, reason = "numbers as memory that may not be initialised")]
fn widen(kept: RowType, row: &[u8], out: &mut [f32]) {
    // SAFETY: the layout is the same, and `widen` stores no uninitialised entry.
    kept.widen(row, unsafe { &mut *(std::ptr::from_mut(out) as *mut [MaybeUninit<f32>]) });
}

/// Splits destinations into ranges of about equal numbers of edges, with their rows of `out`.
fn split_by_edges<'o>(
    by_dst: &Compressed,
    mut out: &'o mut [f32],
    width: usize,
) -> Vec<(usize, &'o mut [f32])> {
    let (indptr, mut first, mut pieces) = (by_dst.indptr(), 0, vec![]);
    while first < by_dst.num_rows() {
        let end = indptr[first].saturating_add(RUN as u32);
        // A range has at least one destination, also if that exceeds the number of edges.
        let next = indptr.partition_point(|&start| start <= end).saturating_sub(1);
        let next = next.clamp(first + 1, by_dst.num_rows().min(first + RUN));
        let (piece, rest) = std::mem::take(&mut out).split_at_mut((next - first) * width);
        pieces.push((first, piece));
        (out, first) = (rest, next);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By one thread and by several, into new memory and into rows that are there.
    #[test]
    fn rows_come_by_id() {
        let (rows, width) = (50, 3);
        let bytes: Vec<u8> =
            (0..rows * width).flat_map(|i| (i as f32 - 7.5).to_le_bytes()).collect();
        let packed = Packed { bytes: &bytes, rows, width, kept: RowType::F32 };
        for n in [0, 1, 20, ALONE / width + 5] {
            let ids: Vec<u32> = (0..n).map(|i| (i * 7 % rows) as u32).collect();
            let want: Vec<f32> = ids
                .iter()
                .flat_map(|&id| (0..width).map(move |j| (id as usize * width + j) as f32 - 7.5))
                .collect();
            assert_eq!(packed.gather(&ids).unwrap(), want);
            let mut out = vec![f32::NAN; want.len()];
            packed.read_rows(&ids, &mut out).unwrap();
            assert_eq!(out, want);
        }
        assert_eq!(Packed { width: 0, ..packed }.gather(&[3, 4]).unwrap(), [0.0; 0]);
    }
}
