//! Maps the rows of a graph to 64-bit ids of a larger graph, and back.

use crate::error::GraphError;
use crate::ids::{FileId, Ids, NodeIds};

/// Distinct 64-bit ids of the nodes or edges of one type, with an index from id to row. Row `i` has the `i`-th id. A
/// partition, for example, has the ids of its nodes in the whole graph.
///
/// ```
/// use burn_gnn_structure::GlobalIds;
/// let ids = GlobalIds::new(vec![1 << 40, 7, u64::MAX])?;
/// assert_eq!((ids.get(2), ids.get(3)), (Some(u64::MAX), None));
/// assert_eq!((ids.position(7), ids.position(8)), (Some(1), None));
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GlobalIds {
    /// The ids, reinterpreted as `i64`.
    bits: NodeIds,
}

impl GlobalIds {
    /// Builds the index of ids, given in row order.
    ///
    /// # Errors
    /// [`GraphError::RepeatedId`] for duplicates.
    ///
    /// # Cost
    /// `O(n)`: 8 bytes per id, and 4 to 10 bytes per id for the index unless the ids are 0, 1, 2, ….
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
    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }
    /// All ids in row order.
    pub fn as_slice(&self) -> &[u64] {
        match self.bits.ids() {
            Ids::Int(ids) => bytemuck::cast_slice(ids),
            // Unreachable: `new` stores numbers only.
            Ids::Text(_) => &[],
        }
    }
    /// The id of a row, or `None` if the row is out of range.
    pub fn get(&self, position: u32) -> Option<u64> {
        self.as_slice().get(position as usize).copied()
    }
    /// The row with this id, in `O(1)`.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.bits.number(FileId::Int(id.cast_signed()))
    }
    /// The rows with these ids, in the order of the ids.
    ///
    /// # Errors
    /// [`GraphError::UnknownId`] for the first id without a row.
    pub fn positions(&self, ids: &[u64]) -> Result<Vec<u32>, GraphError> {
        let of = |(position, &id): (usize, &u64)| {
            self.position(id).ok_or(GraphError::UnknownId { position, id })
        };
        ids.iter().enumerate().map(of).collect()
    }
    /// The ids of `rows`.
    #[doc(hidden)]
    pub fn select(&self, rows: &[u32]) -> Self {
        Self { bits: self.bits.select(rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn position_inverts_get(ids in prop::collection::hash_set(any::<u64>(), 0..30), other in any::<u64>()) {
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
    fn duplicate_and_unknown_ids_are_errors() {
        let e = GlobalIds::new(vec![5, 1 << 63, 5]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "global id 5 was given twice (again at position 2); give every id once"
        );
        let e = GlobalIds::new(vec![5, 1 << 63]).unwrap().positions(&[5, 6]).unwrap_err();
        assert_eq!(
            e.to_string(),
            "position 1: no row has the id 6; leave the id out, or give it a row"
        );
    }
}
