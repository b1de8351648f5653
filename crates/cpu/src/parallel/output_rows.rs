//! Maps the positions of tasks to the rows of an output.

use burn_gnn_plan::Permutation;
use burn_gnn_structure::Compressed;

/// The output row of each position: a permutation of `0..len`.
#[derive(Clone, Copy)]
pub(crate) struct OutputRows<'a> {
    /// `None` if every position is its own row.
    rows: Option<&'a [u32]>,
    len: usize,
}

impl<'a> OutputRows<'a> {
    /// The edge id of each position of a layout. A layout's edge ids are a permutation, which its constructor checks.
    pub(crate) fn by_edge_id(layout: &'a Compressed) -> Self {
        Self { rows: layout.edge_ids(), len: layout.indices().len() }
    }
    /// The entries of a permutation.
    pub(crate) fn permuted(permutation: &'a Permutation) -> Self {
        Self { rows: Some(permutation), len: permutation.len() }
    }
    /// Row `p` for position `p`.
    pub(crate) fn in_order(len: usize) -> Self {
        Self { rows: None, len }
    }
    /// Number of rows.
    pub(super) fn len(self) -> usize {
        self.len
    }
    /// The row of position `p`, below [`len`](Self::len).
    #[inline(always)]
    pub(super) fn row(self, p: usize) -> usize {
        let row = match self.rows {
            Some(rows) => rows[p] as usize,
            None => p,
        };
        assert!(row < self.len, "output row {row} of {}", self.len);
        row
    }
}
