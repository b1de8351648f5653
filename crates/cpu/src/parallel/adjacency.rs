//! Reads a compressed layout as slices inside loops over edges.

use std::ops::Range;

use burn_gnn_structure::Compressed;

use super::output_rows::OutputRows;

/// One compressed layout, as plain slices. Made from a [`Compressed`] only, whose edge ids are distinct.
///
/// Where its arrays lie, in memory or in a mapped file, is asked once. A [`Compressed`] asks at every access, by a call
/// into another crate: inside a loop over edges that puts all sums out of their registers.
#[derive(Clone, Copy)]
pub(crate) struct Adjacency<'a> {
    pub(crate) indptr: &'a [u32],
    /// The node at the other endpoint of the edge at each position.
    pub(crate) indices: &'a [u32],
    /// The edge id at each position; `None` where they are the same number.
    pub(crate) edge_ids: Option<&'a [u32]>,
    output_rows: OutputRows<'a>,
}

impl<'a> Adjacency<'a> {
    pub(crate) fn new(layout: &'a Compressed) -> Self {
        Self {
            indptr: layout.indptr(),
            indices: layout.indices(),
            edge_ids: layout.edge_ids(),
            output_rows: OutputRows::by_edge_id(layout),
        }
    }
    /// Edge id at position `p`.
    #[inline(always)]
    pub(crate) fn edge_id(&self, p: usize) -> usize {
        match self.edge_ids {
            Some(ids) => ids[p] as usize,
            None => p,
        }
    }
    /// Positions of row `r`.
    #[inline(always)]
    pub(crate) fn row(&self, r: usize) -> Range<usize> {
        self.indptr[r] as usize..self.indptr[r + 1] as usize
    }
    /// The output row of the edge at each position.
    pub(crate) fn output_rows(&self) -> OutputRows<'a> {
        self.output_rows
    }
    pub(crate) fn num_rows(&self) -> usize {
        self.indptr.len() - 1
    }
}
