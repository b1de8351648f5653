//! Concatenates several relations with one destination type into one relation.

use std::sync::Arc;

use super::checks::{check_len, check_limit};
use super::edges::Relation;
use crate::derived::Derived;
use crate::error::GraphError;

/// Several relations with one destination type, concatenated into one relation, so that a single kernel reduces over the
/// edges of all of them.
///
/// The sources are the concatenated rows of several tables, one per source type; relations with the same source type
/// share a table. Edges are ordered by relation: edge `i` of relation `r` is edge `edge_range(r).start + i` of
/// [`concatenated`](Self::concatenated).
///
/// Cloning increments a reference count.
///
/// ```
/// use burn_gnn_structure::{Relation, RelationStack};
/// let writes = Relation::from_coo(2, 3, vec![0, 1], vec![0, 2])?; // 2 authors -> 3 papers
/// let cites = Relation::from_coo(3, 3, vec![1], vec![2])?;        // 3 papers -> 3 papers
/// let stack = RelationStack::new(3, &[2, 3], &[(0, writes), (1, cites)])?;
/// assert_eq!(stack.concatenated().src(), [0, 1, 3]); // paper 1 is source row 2 + 1
/// assert_eq!(stack.concatenated().dst(), [0, 2, 2]);
/// assert_eq!(stack.edge_range(1), 2..3);
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RelationStack(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    concatenated: Relation,
    relations: Vec<(usize, Relation)>,
    edges: Vec<u32>,
    tables: Vec<u32>,
    degrees: Derived<Vec<u32>>,
}

impl RelationStack {
    /// `tables` are the numbers of rows of the source tables, and `relations` are pairs of a table index and a relation.
    /// A stack without relations has a concatenated relation without edges.
    ///
    /// # Errors
    /// A table index is out of range; the node counts of a relation differ from the rows of its table or from `num_dst`;
    /// there are more than `u32::MAX - 1` rows or edges in total.
    pub fn new(
        num_dst: usize,
        tables: &[usize],
        relations: &[(usize, Relation)],
    ) -> Result<Self, GraphError> {
        let offsets = |what, sizes: &mut dyn Iterator<Item = usize>| {
            let (mut at, mut total) = (vec![0u32], 0u64);
            for size in sizes {
                total = total.saturating_add(size as u64);
                check_limit(what, total).map_err(|e| e.in_relation("stack"))?;
                at.push(total as u32);
            }
            Ok::<_, GraphError>(at)
        };
        let starts = offsets("nodes", &mut tables.iter().copied())?;
        let edges = offsets("edges", &mut relations.iter().map(|(_, r)| r.num_edges()))?;
        let total = edges.last().map_or(0, |&e| e as usize);
        let (mut src, mut dst) = (Vec::with_capacity(total), Vec::with_capacity(total));
        for (i, (table, relation)) in relations.iter().enumerate() {
            let length = |arg, why, expected, actual| {
                check_len(arg, why, expected, actual)
                    .map_err(|e| e.in_relation(&format!("stack[{i}]")))
            };
            let rows = tables.get(*table).copied().ok_or(GraphError::NodeOutOfRange {
                relation: format!("stack[{i}]"),
                arg: "table",
                position: i,
                bound: tables.len(),
                value: *table as i128,
            })?;
            length("num_src", "rows of its source table", rows, relation.num_src())?;
            length("num_dst", "nodes of the destination type", num_dst, relation.num_dst())?;
            src.extend(relation.src().iter().map(|&u| u + starts[*table]));
            dst.extend_from_slice(relation.dst());
        }
        let concatenated =
            Relation::from_coo(starts.last().map_or(0, |&n| n as usize), num_dst, src, dst)?;
        Ok(Self(Arc::new(Inner {
            concatenated,
            relations: relations.to_vec(),
            edges,
            tables: starts,
            degrees: Derived::new(),
        })))
    }

    /// All edges as one relation. Its source ids are rows of the concatenated tables.
    pub fn concatenated(&self) -> &Relation {
        &self.0.concatenated
    }
    /// Number of relations.
    pub fn len(&self) -> usize {
        self.0.relations.len()
    }
    /// Whether there are no relations.
    pub fn is_empty(&self) -> bool {
        self.0.relations.is_empty()
    }
    /// Pairs of table index and relation, in the order of construction.
    pub fn relations(&self) -> &[(usize, Relation)] {
        &self.0.relations
    }
    /// The edge ids of relation `r` in the concatenated relation.
    ///
    /// # Panics
    /// If `r` is out of range.
    #[track_caller]
    pub fn edge_range(&self, r: usize) -> std::ops::Range<usize> {
        assert!(
            r < self.len(),
            "`r` must lie in 0..{} (relations of the stack), got {r}",
            self.len()
        );
        self.0.edges[r] as usize..self.0.edges[r + 1] as usize
    }
    /// Edge offsets of the relations, `len() + 1` entries.
    pub fn edge_offsets(&self) -> &[u32] {
        &self.0.edges
    }
    /// For every edge, the in-degree of its destination in its own relation: the divisor of a mean per relation. It is
    /// computed on first use in `O(edges)`, and cached.
    ///
    /// ```
    /// use burn_gnn_structure::{Relation, RelationStack};
    /// let writes = Relation::from_coo(2, 2, vec![0, 1, 1], vec![0, 0, 1])?;
    /// let cites = Relation::from_coo(2, 2, vec![1], vec![0])?;
    /// let stack = RelationStack::new(2, &[2], &[(0, writes), (0, cites)])?;
    /// assert_eq!(stack.degrees_by_edge(), [2, 2, 1, 1]);
    /// # Ok::<(), burn_gnn_structure::GraphError>(())
    /// ```
    pub fn degrees_by_edge(&self) -> &[u32] {
        self.0.degrees.get_or_compute(|| {
            let mut at = vec![0u32; self.0.concatenated.num_dst()];
            let mut degrees = Vec::with_capacity(self.0.concatenated.num_edges());
            for (_, relation) in &self.0.relations {
                let dst = relation.dst();
                dst.iter().for_each(|&v| at[v as usize] += 1);
                degrees.extend(dst.iter().map(|&v| at[v as usize]));
                // Resets only the counters in use: a pass over all nodes per relation would cost more than the edges.
                dst.iter().for_each(|&v| at[v as usize] = 0);
            }
            degrees
        })
    }
    /// Row offsets of the tables in the concatenated source rows, one entry more than tables.
    pub fn table_offsets(&self) -> &[u32] {
        &self.0.tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(n: usize, m: usize) -> Relation {
        Relation::from_coo(n, m, vec![0, 1], vec![1, 0]).unwrap()
    }

    #[test]
    fn relations_of_one_source_type_share_a_table() {
        let stack = RelationStack::new(
            2,
            &[3, 2],
            &[(1, relation(2, 2)), (0, relation(3, 2)), (1, relation(2, 2))],
        )
        .unwrap();
        assert_eq!(stack.concatenated().src(), [3, 4, 0, 1, 3, 4]);
        assert_eq!(stack.concatenated().dst(), [1, 0, 1, 0, 1, 0]);
        assert_eq!(
            (stack.edge_offsets(), stack.table_offsets()),
            (&[0, 2, 4, 6][..], &[0, 3, 5][..])
        );
        assert_eq!(stack.edge_range(2), 4..6);
    }

    #[test]
    fn no_relations() {
        let stack = RelationStack::new(4, &[], &[]).unwrap();
        assert!(
            stack.is_empty()
                && stack.concatenated().num_edges() == 0
                && stack.concatenated().num_dst() == 4
        );
    }

    #[test]
    fn mismatched_relations_are_errors() {
        let text = |r: Result<RelationStack, GraphError>| r.unwrap_err().to_string();
        assert_eq!(
            text(RelationStack::new(2, &[3], &[(0, relation(2, 2))])),
            "`num_src` of relation `stack[0]`: expected length 3 (rows of its source table), got 2; give 3 entries"
        );
        assert!(text(RelationStack::new(3, &[2], &[(0, relation(2, 2))])).contains("`num_dst`"));
        assert!(
            text(RelationStack::new(2, &[2], &[(1, relation(2, 2))]))
                .contains("must lie in 0..1, got 1")
        );
        assert!(text(RelationStack::new(0, &[u32::MAX as usize, 2], &[])).contains("nodes"));
    }
}
