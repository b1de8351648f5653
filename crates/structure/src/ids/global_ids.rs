//! Maps positions of nodes or edges to ids in a larger graph.

use crate::error::GraphError;
use crate::ids::{FileId, Ids, NodeIds};

/// Distinct 64-bit ids of the nodes or edges of one type, for example those that they have in the graph of which this
/// one is a part: row `i` has the `i`-th id. Both directions.
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
        let of = |(position, &id): (usize, &u64)| {
            self.position(id).ok_or(GraphError::UnknownId { position, id })
        };
        ids.iter().enumerate().map(of).collect()
    }
    /// Of the rows at `rows`.
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
