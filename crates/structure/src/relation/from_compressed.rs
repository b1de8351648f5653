//! Constructs relations from CSR and CSC arrays of any integer type.

use super::checks::{check_counts, check_len};
use super::edges::Relation;
use super::whole_number::{WholeNumber, check_indptr, narrow};
use crate::error::graph_error::{GraphError, UNNAMED};

impl Relation {
    /// From CSR: row `u` of `indptr` lists the destinations of source `u`. `edge_ids[p]` is the id of the edge at position
    /// `p`; without `edge_ids` it is the position. Edge ids must be a permutation; use `GraphBuilder::edge_ids` to store
    /// other ids. Offsets and node ids may have any common integer type.
    ///
    /// ```
    /// use burn_gnn_structure::Relation;
    /// let r = Relation::from_csr(2, 3, &[0u64, 2, 3], &[1i64, 2, 0], None)?;
    /// assert_eq!((r.src(), r.dst()), (&[0, 0, 1][..], &[1, 2, 0][..]));
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Lengths do not match, `indptr` decreases, an id is negative or out of range, or an edge id occurs twice.
    pub fn from_csr<P: WholeNumber, I: WholeNumber>(
        num_src: usize,
        num_dst: usize,
        indptr: &[P],
        indices: &[I],
        edge_ids: Option<&[u32]>,
    ) -> Result<Self, GraphError> {
        let (src, dst) = expand(num_src, num_dst, indptr, indices, edge_ids)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }

    /// From CSC: row `v` of `indptr` lists the sources of destination `v`. Otherwise it is like
    /// [`from_csr`](Self::from_csr).
    ///
    /// # Errors
    /// As for [`from_csr`](Self::from_csr).
    pub fn from_csc<P: WholeNumber, I: WholeNumber>(
        num_src: usize,
        num_dst: usize,
        indptr: &[P],
        indices: &[I],
        edge_ids: Option<&[u32]>,
    ) -> Result<Self, GraphError> {
        let (dst, src) = expand(num_dst, num_src, indptr, indices, edge_ids)?;
        Ok(Self::new(num_src, num_dst, src, dst))
    }
}

/// Validates a compressed layout and expands it to COO: the row and the index of each edge, by edge id.
fn expand<P: WholeNumber, I: WholeNumber>(
    rows: usize,
    cols: usize,
    indptr: &[P],
    indices: &[I],
    edge_ids: Option<&[u32]>,
) -> Result<(Vec<u32>, Vec<u32>), GraphError> {
    let e = indices.len();
    check_counts(rows, cols, e)?;
    check_indptr(rows, indptr, e)?;
    let indices = narrow("indices", indices, cols)?;
    let mut row_of = Vec::with_capacity(e);
    for (r, w) in indptr.windows(2).enumerate() {
        row_of.resize(w[1].wide() as usize, r as u32);
    }
    let Some(ids) = edge_ids else { return Ok((row_of, indices)) };
    check_len("edge_ids", "one entry per entry of `indices`", e, ids.len())?;
    let mut seen = vec![false; e];
    for (position, &id) in ids.iter().enumerate() {
        let repeated = seen.get(id as usize).copied();
        if repeated != Some(false) {
            let (relation, value) = (UNNAMED.into(), u64::from(id));
            return Err(GraphError::EdgeIds {
                relation,
                position,
                bound: e,
                value,
                repeated: repeated.is_some(),
            });
        }
        seen[id as usize] = true;
    }
    let (mut row_by_id, mut col_by_id) = (vec![0; e], vec![0; e]);
    for (p, &id) in ids.iter().enumerate() {
        row_by_id[id as usize] = row_of[p];
        col_by_id[id as usize] = indices[p];
    }
    Ok((row_by_id, col_by_id))
}
