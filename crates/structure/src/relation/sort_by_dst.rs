//! Renumbers the edges of a relation by destination.

use super::edges::{Relation, Sorted};
use crate::derived::Derived;

impl Relation {
    /// The same edges, renumbered by destination and then by old edge id. The messages of every destination then have
    /// consecutive rows, which reduce functions over whole neighbourhoods need.
    ///
    /// If edges are already in this order, the result is the relation itself. Otherwise the result is built on first
    /// use in `O(E)` and cached with the relation, with about 20 bytes per edge.
    ///
    /// ```
    /// use burn_gnn_structure::Relation;
    /// let r = Relation::from_coo(3, 2, vec![0, 1, 2], vec![1, 0, 1])?;
    /// let sorted = r.sorted_by_dst();
    /// assert_eq!((sorted.src(), sorted.dst()), (&[1, 0, 2][..], &[0, 1, 1][..]));
    /// assert_eq!(r.dst_order().map(Relation::src), Some(&[1, 0, 2][..])); // old id of each edge
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    #[must_use]
    pub fn sorted_by_dst(&self) -> Self {
        if self.csc().edge_ids().is_none() { self.clone() } else { self.sorted().relation.clone() }
    }

    /// The permutation of [`sorted_by_dst`](Self::sorted_by_dst), as a relation for gathering edge features: the source
    /// of its edge `i` is the old id of edge `i`, and all edges have the same destination. `None` if ids are unchanged.
    /// It is cached, too.
    pub fn dst_order(&self) -> Option<&Self> {
        let ids = self.csc().edge_ids()?;
        Some(
            self.sorted().order.get_or_compute(|| {
                unchecked(self.num_edges(), 1, ids.to_vec(), vec![0; ids.len()])
            }),
        )
    }

    fn sorted(&self) -> &Sorted {
        self.sorted_cell().get_or_compute(|| {
            let csc = self.csc();
            let mut dst = Vec::with_capacity(self.num_edges());
            (0..self.num_dst()).for_each(|v| dst.resize(csc.row(v).end, v as u32));
            let relation = unchecked(self.num_src(), self.num_dst(), csc.indices().to_vec(), dst);
            Sorted { relation, order: Derived::new() }
        })
    }
}

/// A relation of ids that were validated when another relation was built from them.
fn unchecked(num_src: usize, num_dst: usize, src: Vec<u32>, dst: Vec<u32>) -> Relation {
    match Relation::from_coo(num_src, num_dst, src, dst) {
        Ok(relation) => relation,
        Err(e) => unreachable!("renumbered edges of a relation: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn renumbered_edges_are_the_same_edges(edges in proptest::collection::vec((0u32..6, 0u32..5), 0..40), reversed in any::<bool>()) {
            let (src, dst) = edges.into_iter().unzip();
            let r = Relation::from_coo(6, 5, src, dst).unwrap();
            let r = if reversed { r.reverse() } else { r };
            let sorted = r.sorted_by_dst();
            prop_assert!(sorted.dst().is_sorted() && sorted.csc().edge_ids().is_none());
            prop_assert_eq!((sorted.num_src(), sorted.num_dst()), (r.num_src(), r.num_dst()));
            prop_assert_eq!(sorted.csc().indptr(), r.csc().indptr());
            prop_assert_eq!(sorted.csc().indices(), r.csc().indices());
            match r.dst_order() {
                None => prop_assert!(sorted.is_same(&r)),
                Some(order) => {
                    let old = order.src();
                    prop_assert_eq!(sorted.src(), old.iter().map(|&e| r.src()[e as usize]).collect::<Vec<_>>());
                    prop_assert_eq!(sorted.dst(), old.iter().map(|&e| r.dst()[e as usize]).collect::<Vec<_>>());
                    // Old ids ascend inside of a destination.
                    prop_assert!(sorted.dst().windows(2).zip(old.windows(2)).all(|(v, e)| v[0] < v[1] || e[0] < e[1]));
                }
            }
            prop_assert!(r.sorted_by_dst().is_same(&sorted), "built once");
        }
    }
}
