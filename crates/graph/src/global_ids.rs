//! Ids of nodes or edges in a larger graph, beside their positions.

use crate::{FileId, GraphError, Ids, NodeIds};

/// Distinct 64-bit ids of the nodes or edges of one type, for example those that they have in the graph of which this
/// one is a part: row `i` has the `i`-th id. Both directions.
///
/// ```
/// use burn_gnn_graph::GlobalIds;
/// let ids = GlobalIds::new(vec![1 << 40, 7, u64::MAX])?;
/// assert_eq!((ids.get(2), ids.get(3)), (Some(u64::MAX), None));
/// assert_eq!((ids.position(7), ids.position(8)), (Some(1), None));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalIds {
    /// The index is that of signed numbers of the same bits, which are distinct where these are.
    bits: NodeIds,
}

impl GlobalIds {
    /// Of ids in the order of the rows. Builds the index.
    ///
    /// # Errors
    /// [`GraphError::RepeatedId`].
    ///
    /// # Cost
    /// `O(n)`: 8 bytes per id, and 4 to 10 for the index unless ids are 0, 1, 2, ….
    pub fn new(ids: Vec<u64>) -> Result<Self, GraphError> {
        let bits = NodeIds::new(Ids::Int(ids.into_iter().map(u64::cast_signed).collect()));
        let ids = Self { bits };
        let repeated = ids.bits.repeated().next();
        match repeated {
            None => Ok(ids),
            Some((position, _)) => {
                let id = ids.as_slice()[position];
                Err(GraphError::RepeatedId { what: "global".into(), position, id })
            }
        }
    }
    /// Number of ids.
    pub fn len(&self) -> usize {
        self.bits.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }
    /// All ids, by position.
    pub fn as_slice(&self) -> &[u64] {
        match self.bits.ids() {
            Ids::Int(ids) => bytemuck::cast_slice(ids),
            // Made of numbers alone.
            Ids::Text(_) => &[],
        }
    }
    /// The id of the row at a position.
    pub fn get(&self, position: u32) -> Option<u64> {
        self.as_slice().get(position as usize).copied()
    }
    /// The position of the row with an id, `O(1)`.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.bits.number(FileId::Int(id.cast_signed()))
    }
    /// The positions of rows by their ids, in the order of these.
    ///
    /// # Errors
    /// [`GraphError::UnknownId`] for the first id that no row has.
    pub fn positions(&self, ids: &[u64]) -> Result<Vec<u32>, GraphError> {
        let of = |(position, &id): (usize, &u64)| self.position(id).ok_or(GraphError::UnknownId { position, id });
        ids.iter().enumerate().map(of).collect()
    }
    /// Of the rows at `rows`.
    pub(crate) fn select(&self, rows: &[u32]) -> Self {
        Self { bits: self.bits.select(rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Graph, Relation};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_and_back(ids in prop::collection::hash_set(any::<u64>(), 0..30), other in any::<u64>()) {
            let raw: Vec<u64> = ids.iter().copied().collect();
            let ids = GlobalIds::new(raw.clone()).unwrap();
            prop_assert_eq!(ids.as_slice(), &raw);
            for (i, &id) in raw.iter().enumerate() {
                prop_assert_eq!((ids.position(id), ids.get(i as u32)), (Some(i as u32), Some(id)));
            }
            prop_assert_eq!(ids.position(other).is_some(), raw.contains(&other));
        }
    }

    #[test]
    fn what_is_refused() {
        let e = GlobalIds::new(vec![5, 1 << 63, 5]).unwrap_err();
        assert_eq!(e.to_string(), "global id 5 was given twice (again at position 2)");
        let e = GlobalIds::new(vec![5, 1 << 63]).unwrap().positions(&[5, 6]).unwrap_err();
        assert_eq!(e.to_string(), "position 1: no row has the id 6");
    }

    /// Edges of any layout, by position; refused for types without edges and for other lengths.
    #[test]
    fn ids_of_edges() {
        let etype = ("a", "r", "a");
        let ids = vec![9u64, u64::MAX, 1 << 33];
        let by_source = Relation::from_csr(3, 3, &[0u64, 1, 1, 3], &[1i64, 0, 2], None).unwrap();
        let g = Graph::builder().relation(etype, by_source).edge_ids(etype, ids.clone()).build().unwrap();
        let found = g.edges("r").unwrap().global_ids().unwrap();
        assert_eq!((found.as_slice(), found.position(1 << 33)), (&ids[..], Some(2)));
        // Samples and subgraphs name positions, which lead to the ids.
        let sub = g.edge_subgraph([("r", [2, 0])], crate::Relabel::Yes).unwrap();
        assert_eq!(sub.graph.edges("r").unwrap().global_ids().unwrap().as_slice(), [1 << 33, 9]);
        let build = |ids: Vec<u64>, of: (&str, &str, &str)| {
            Graph::builder().edges(etype, vec![0, 2, 2], vec![1, 0, 2]).edge_ids(of, ids).build().map(drop).unwrap_err().to_string()
        };
        assert_eq!(build(vec![1, 2], etype), "`edges of `a:r:a`: global ids`: expected length 3 (one row per node or edge), got 2");
        assert!(build(vec![1, 2, 1], etype).contains("global id 1 was given twice"));
        assert!(build(vec![1, 2, 3], ("a", "q", "a")).contains("unknown edge type `a:q:a`"));
        let twice = Graph::builder().edges(etype, vec![0], vec![0]).edge_ids(etype, [1]).edge_ids(etype, [2]).build().unwrap_err();
        assert!(matches!(twice, GraphError::Duplicate { .. }), "{twice}");
    }
}
