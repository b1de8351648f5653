//! Makes relations from CSR and CSC arrays of any integer type.

use super::checks::{check_counts, check_len};
use super::edges::Relation;
use super::whole_number::{WholeNumber, check_indptr, narrow};
use crate::error::graph_error::{GraphError, UNNAMED};

impl Relation {
    /// From CSR: row `u` of `indptr` lists the destinations of source `u`. `edge_ids[p]` is the id of the edge at
    /// position `p` (`None`: the position itself) and must be a permutation; other ids are kept beside positions by
    /// `GraphBuilder::edge_ids`. Offsets and nodes may be of any integer type that
    /// files and other libraries have.
    ///
    /// ```
    /// use burn_gnn_structure::Relation;
    /// let r = Relation::from_csr(2, 3, &[0u64, 2, 3], &[1i64, 2, 0], None)?;
    /// assert_eq!((r.src(), r.dst()), (&[0, 0, 1][..], &[1, 2, 0][..]));
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    ///
    /// # Errors
    /// Wrong lengths, `indptr` not monotone, ids out of range (negative ones are), repeated edge ids.
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

    /// From CSC: row `v` of `indptr` lists the sources of destination `v`; otherwise as
    /// [`from_csr`](Self::from_csr).
    ///
    /// # Errors
    /// As [`from_csr`](Self::from_csr).
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

/// COO out of a compressed layout, after checking it: `(row of each edge, index of each edge)`.
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
