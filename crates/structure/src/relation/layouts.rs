//! Constructs relations from edges together with their layouts, for example from a mapped file.

use rayon::prelude::*;

use super::checks::{check_counts, check_len, check_nodes};
use super::compressed::Compressed;
use super::edges::{Coo, Endpoints, Relation};
use crate::arrays::shared_array::U32Array;
use crate::derived::Derived;
use crate::error::graph_error::{GraphError, UNNAMED};

/// The arrays of a [`Compressed`] layout. Offsets and edge ids, on which kernels rely, are in owned memory.
pub struct LayoutArrays {
    /// [`Compressed::indptr`].
    pub indptr: Vec<u32>,
    /// [`Compressed::indices`].
    pub indices: U32Array,
    /// [`Compressed::edge_ids`].
    pub edge_ids: Option<Vec<u32>>,
}

impl Relation {
    /// From edges together with both layouts: `csc` by destination and `csr` by source. The layouts are validated but not
    /// sorted. Node ids may be in shared memory ([`U32Array::shared`]).
    ///
    /// # Errors
    /// As for [`from_coo`](Self::from_coo); [`GraphError::Layout`] if a layout is not the layout of the edges.
    ///
    /// # Cost
    /// Reads all arrays once, in parallel.
    #[doc(hidden)]
    pub fn from_layouts(
        num_src: usize,
        num_dst: usize,
        src: U32Array,
        dst: U32Array,
        csc: LayoutArrays,
        csr: LayoutArrays,
    ) -> Result<Self, GraphError> {
        check_counts(num_src, num_dst, src.len())?;
        check_len("dst", "one entry per entry of `src`", src.len(), dst.len())?;
        check_nodes("src", &src, num_src)?;
        check_nodes("dst", &dst, num_dst)?;
        let layout = |name: &'static str,
                      arrays: LayoutArrays,
                      rows: usize,
                      key: &U32Array,
                      other: &U32Array| {
            let LayoutArrays { indptr, indices, edge_ids } = arrays;
            let layout = Compressed::new(indptr, indices, edge_ids);
            let found =
                disagreement(&layout, rows, key, other).or_else(|| match layout.edge_ids() {
                    // The test above compared edges by `key`, which the owner of shared memory may change in between.
                    Some(ids) if key.is_shared() && !is_permutation(ids) => {
                        Some("an edge twice".into())
                    }
                    _ => None,
                });
            match found {
                None => Ok(Derived::from(layout)),
                Some(found) => {
                    Err(GraphError::Layout { relation: UNNAMED.into(), layout: name, found })
                }
            }
        };
        let layouts =
            [layout("csc", csc, num_dst, &dst, &src)?, layout("csr", csr, num_src, &src, &dst)?];
        Ok(Self::from_words(num_src, num_dst, Coo { src, dst }, layouts))
    }

    /// Whether the edges and the layout by destination are in shared memory, such as a mapped file. Node ids in shared
    /// memory may change after validation.
    pub fn is_mapped(&self) -> bool {
        matches!(&self.edges.endpoints, Endpoints::Given(coo) if coo.src.is_shared())
            && self.csc_cell().get().is_none_or(|l| l.indices.is_shared())
    }
}

/// Describes how a layout differs from the layout of the edges `key[i]`, `other[i]`; `None` if it is correct: it has every
/// edge once, in the row of its key, with ascending ids in each row.
fn disagreement(l: &Compressed, rows: usize, key: &[u32], other: &[u32]) -> Option<String> {
    let (indptr, edges) = (l.indptr(), key.len());
    let lengths = (indptr.len(), l.indices().len(), l.edge_ids().map_or(edges, <[u32]>::len));
    if lengths != (rows + 1, edges, edges) {
        return Some(format!("arrays of {lengths:?} for {rows} rows and {edges} edges"));
    }
    if indptr[0] != 0
        || indptr[rows] as usize != edges
        || !indptr.par_windows(2).all(|w| w[0] <= w[1])
    {
        return Some(format!("offsets that do not go from 0 to {edges}"));
    }
    // Ids ascend in every row and belong to the row, so they are distinct, and so all edges are present.
    let is_right = |r: usize| {
        let ids = || l.row(r).map(|p| (p, l.edge_id(p) as usize));
        let in_row =
            ids().all(|(p, id)| id < edges && key[id] as usize == r && other[id] == l.indices()[p]);
        in_row && ids().zip(ids().skip(1)).all(|(a, b)| a.1 < b.1)
    };
    let wrong = (0..rows).into_par_iter().with_min_len(1 << 10).find_first(|&r| !is_right(r))?;
    Some(format!("other edges in row {wrong}"))
}

/// Whether `ids` is a permutation of `0..ids.len()`.
fn is_permutation(ids: &[u32]) -> bool {
    let mut seen = vec![0u64; ids.len().div_ceil(64)];
    ids.iter().all(|&id| {
        let (word, bit) = (id as usize / 64, 1 << (id % 64));
        let new = (id as usize) < ids.len() && seen[word] & bit == 0;
        if new {
            seen[word] |= bit;
        }
        new
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const LENGTHS: [usize; 8] = [3, 3, 3, 3, 3, 4, 3, 3];

    /// The edges 2 -> 1, 0 -> 0, 2 -> 0 and their layouts, after `change` has modified the arrays.
    fn with(shared: bool, change: impl FnOnce(&mut [Vec<u32>; 8])) -> Result<Relation, GraphError> {
        let (src, dst) = (vec![2, 0, 2], vec![1, 0, 0]);
        let (csc, csr) = (
            [vec![0, 2, 3], vec![0, 2, 2], vec![1, 2, 0]],
            [vec![0, 1, 1, 3], vec![0, 1, 0], vec![1, 0, 2]],
        );
        let ([a, b, c], [d, e, f]) = (csc, csr);
        let mut arrays = [src, dst, a, b, c, d, e, f];
        change(&mut arrays);
        let [src, dst, csc_indptr, csc_indices, csc_ids, csr_indptr, csr_indices, csr_ids] = arrays;
        let words = |v: Vec<u32>| if shared { U32Array::shared(Arc::new(v)) } else { v.into() };
        let csc = LayoutArrays {
            indptr: csc_indptr,
            indices: words(csc_indices),
            edge_ids: Some(csc_ids),
        };
        let csr = LayoutArrays {
            indptr: csr_indptr,
            indices: words(csr_indices),
            edge_ids: Some(csr_ids),
        };
        Relation::from_layouts(3, 2, words(src), words(dst), csc, csr)
    }

    #[test]
    fn only_the_layouts_of_the_edges_are_accepted() {
        let expected = Relation::from_coo(3, 2, vec![2, 0, 2], vec![1, 0, 0]).unwrap();
        for shared in [false, true] {
            let r = with(shared, |_| {}).unwrap();
            assert_eq!((&r, r.csc(), r.csr()), (&expected, expected.csc(), expected.csr()));
            assert_eq!((r.is_mapped(), r.reverse().is_mapped()), (shared, shared));
            // Increments and decrements every entry of every array.
            for array in 0..8 {
                for at in 0..LENGTHS[array] {
                    for change in [1, u32::MAX] {
                        let e = with(shared, |arrays| {
                            arrays[array][at] = arrays[array][at].wrapping_add(change)
                        })
                        .unwrap_err();
                        assert!(
                            matches!(
                                e,
                                GraphError::Layout { .. } | GraphError::NodeOutOfRange { .. }
                            ),
                            "{array}, {at}: {e}"
                        );
                    }
                }
                let e = with(shared, |arrays| arrays[array].push(0)).unwrap_err();
                assert!(
                    matches!(e, GraphError::Layout { .. } | GraphError::Length { .. }),
                    "{array}: {e}"
                );
            }
        }
        assert!(!expected.is_mapped());
        let e = with(false, |arrays| arrays[4] = vec![2, 1, 0])
            .unwrap_err()
            .in_relation("a:r:b")
            .to_string();
        assert_eq!(
            e,
            "relation `a:r:b`, `csc`: expected the layout of the edges, found other edges in row 0; build the layout from these edges"
        );
    }
}
