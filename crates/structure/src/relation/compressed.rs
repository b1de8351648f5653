//! Holds a compressed layout of a relation: CSC or CSR.

use crate::arrays::shared_array::U32Array;
use crate::derived::Attached;
use crate::memory::bytes::{Bytes, CountBytes};

/// A compressed layout: row `r` holds positions `indptr[r]..indptr[r + 1]`.
///
/// Inside a row, edges stand in ascending edge id, so sums have one order whichever way a relation
/// was given.
///
/// Unsafe code relies on [`indptr`](Self::indptr), which never decreases and ends at the number of edges, and on
/// [`edge_ids`](Self::edge_ids), a permutation of them. Both are in memory and were checked when the layout was made.
/// [`indices`](Self::indices) may lie in memory that another owner holds (a mapped file), and be others when that is
/// changed: they are bounds-checked wherever they are used.
#[derive(Debug, PartialEq, Eq)]
pub struct Compressed {
    indptr: Vec<u32>,
    pub(super) indices: U32Array,
    edge_ids: Option<Vec<u32>>,
    attached: Attached,
}

impl Compressed {
    pub(super) fn new(indptr: Vec<u32>, indices: U32Array, edge_ids: Option<Vec<u32>>) -> Self {
        Self { indptr, indices, edge_ids, attached: Attached::default() }
    }
    /// Row offsets, `num_rows + 1` entries, never decreasing, from 0 to the number of edges.
    #[inline]
    pub fn indptr(&self) -> &[u32] {
        &self.indptr
    }
    /// The node at the other endpoint of the edge at each position.
    #[inline]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
    /// The edge id at each position; `None` where position and edge id are the same number, so that
    /// kernels read no permutation.
    #[inline]
    pub fn edge_ids(&self) -> Option<&[u32]> {
        self.edge_ids.as_deref()
    }
    /// Edge id at position `p`.
    #[inline(always)]
    pub fn edge_id(&self, p: usize) -> u32 {
        match &self.edge_ids {
            Some(ids) => ids[p],
            None => p as u32,
        }
    }
    /// Positions of row `r`.
    #[inline(always)]
    pub fn row(&self, r: usize) -> std::ops::Range<usize> {
        self.indptr[r] as usize..self.indptr[r + 1] as usize
    }
    /// Number of rows.
    #[inline]
    pub fn num_rows(&self) -> usize {
        self.indptr.len() - 1
    }
    /// What backends keep beside these arrays.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }
}

impl CountBytes for Compressed {
    fn bytes(&self) -> Bytes {
        self.indptr.bytes() + self.indices.bytes() + self.edge_ids.bytes() + self.attached.bytes()
    }
}
