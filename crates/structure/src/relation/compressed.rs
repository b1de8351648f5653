//! A compressed layout of a relation: CSC or CSR.

use crate::arrays::shared_array::U32Array;
use crate::derived::Attached;
use crate::memory::bytes::{Bytes, CountBytes};

/// A compressed layout (CSC or CSR): the edges of a relation, sorted by one endpoint.
///
/// Row `r` has the positions `indptr[r]..indptr[r + 1]` of two arrays: the node at the other endpoint, and the edge id. In
/// CSC, rows are destinations and `indices` are sources. In CSR, rows are sources and `indices` are destinations.
///
/// ```text
/// edges       id:  0      1      2             CSC, rows are destinations
///                2 → 1  0 → 0  2 → 1
///                                              row          0   │   1
/// indptr     [0, 1, 3]                         position     0   │ 1   2
///             │  │  └ end of row 1             indices    [ 0,  │ 2,  2 ]     source of each edge
///             │  └ start of row 1              edge_ids   [ 1,  │ 0,  2 ]     id of each edge
///             └ start of row 0
/// ```
///
/// Edge ids ascend inside of each row. So a sum over a neighbourhood always has the same order, however the relation was
/// constructed. If edges are sorted by the endpoint already, position and edge id are equal, and `edge_ids` is `None`.
///
/// # Invariants
/// Unsafe code relies on [`indptr`](Self::indptr), which never decreases and ends at the number of edges, and on
/// [`edge_ids`](Self::edge_ids), which is a permutation of `0..num_edges`. Both are in owned memory and validated on
/// construction. Unsafe code must not rely on [`indices`](Self::indices), which may be in a mapped file that another
/// process changes: they are bounds-checked at every use.
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
    /// Row offsets: `num_rows + 1` entries, never decreasing, from 0 to the number of edges.
    #[inline]
    pub fn indptr(&self) -> &[u32] {
        &self.indptr
    }
    /// The node at the other endpoint of the edge at each position.
    #[inline]
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }
    /// The edge id at each position; `None` if every edge id equals its position, so that kernels read no permutation.
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
    /// The positions of row `r`.
    #[inline(always)]
    pub fn row(&self, r: usize) -> std::ops::Range<usize> {
        self.indptr[r] as usize..self.indptr[r + 1] as usize
    }
    /// Number of rows.
    #[inline]
    pub fn num_rows(&self) -> usize {
        self.indptr.len() - 1
    }
    /// The cache of values that backends derive from these arrays.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }
}

impl CountBytes for Compressed {
    fn bytes(&self) -> Bytes {
        self.indptr.bytes() + self.indices.bytes() + self.edge_ids.bytes() + self.attached.bytes()
    }
}
