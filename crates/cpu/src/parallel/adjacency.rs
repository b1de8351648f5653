//! A compressed layout as plain slices, for loops over edges.

use std::ops::Range;

use burn_gnn_structure::Compressed;

use super::output_rows::OutputRows;

/// The arrays of a [`Compressed`] layout as slices.
///
/// A [`Compressed`] resolves at every access whether its arrays are in owned or mapped memory, by a call into another
/// crate. Inside of a loop over edges such a call would spill the sums from their registers. An `Adjacency` resolves it
/// once.
#[derive(Clone, Copy)]
pub(crate) struct Adjacency<'a> {
    pub(crate) indptr: &'a [u32],
    /// The node at the other endpoint of the edge at each position.
    pub(crate) indices: &'a [u32],
    /// The edge id at each position; `None` if every edge id equals its position.
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
