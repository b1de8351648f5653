//! Converts type-wise ids to global (homogeneous) ids and back.

use crate::error::GraphError;
use crate::relation::checks::check_id;

/// A type-wise id: the number of a node or edge type, and an id inside of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypedId {
    /// Type number in schema order.
    pub ty: usize,
    /// Id inside of the type, from 0.
    pub id: u64,
}

/// A global (homogeneous) id. Nodes (or edges) of all types share one numbering, type after type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HomoId(pub u64);

/// Converts type-wise ids to global (homogeneous) ids and back.
///
/// Type `t` owns the half-open range `offsets[t]..offsets[t + 1]`. The range of an empty type is empty, so an id at a
/// boundary belongs to the next type that is not empty.
///
/// ```
/// use burn_gnn_structure::{HomoId, IdMap, TypedId};
/// let map = IdMap::from_counts([200, 0, 5])?;
/// assert_eq!(map.to_typed(HomoId(199))?, TypedId { ty: 0, id: 199 });
/// assert_eq!(map.to_typed(HomoId(200))?, TypedId { ty: 2, id: 0 });
/// assert_eq!(map.to_homo(TypedId { ty: 2, id: 4 })?, HomoId(204));
/// assert!(map.to_typed(HomoId(205)).is_err());
/// # Ok::<(), burn_gnn_structure::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdMap {
    offsets: Vec<u64>,
}

impl IdMap {
    /// From the number of ids of each type, in type order.
    ///
    /// # Errors
    /// The sum of the counts exceeds `u64::MAX`.
    pub fn from_counts(counts: impl IntoIterator<Item = usize>) -> Result<Self, GraphError> {
        let mut offsets = vec![0u64];
        let mut sum = 0u64;
        for c in counts {
            sum = sum.checked_add(c as u64).ok_or_else(|| GraphError::TooLarge {
                relation: "(all)".into(),
                what: "ids",
                count: u64::MAX,
                limit: u64::MAX,
            })?;
            offsets.push(sum);
        }
        Ok(Self { offsets })
    }

    /// Number of types.
    pub fn num_types(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Number of ids over all types.
    pub fn total(&self) -> u64 {
        self.offsets[self.num_types()]
    }
    /// The global ids of type `ty`.
    ///
    /// # Errors
    /// `ty` is not a type.
    pub fn range(&self, ty: usize) -> Result<std::ops::Range<u64>, GraphError> {
        check_id("type", ty as u64, self.num_types() as u64)?;
        Ok(self.offsets[ty]..self.offsets[ty + 1])
    }
    /// Global id to type and type-wise id; `O(log types)`.
    ///
    /// # Errors
    /// `id` is not below [`total`](Self::total).
    pub fn to_typed(&self, id: HomoId) -> Result<TypedId, GraphError> {
        check_id("homogeneous", id.0, self.total())?;
        let ty = self.offsets.partition_point(|&o| o <= id.0) - 1;
        Ok(TypedId { ty, id: id.0 - self.offsets[ty] })
    }
    /// Type-wise id to global id.
    ///
    /// # Errors
    /// The type does not exist or has no such id.
    pub fn to_homo(&self, id: TypedId) -> Result<HomoId, GraphError> {
        let r = self.range(id.ty)?;
        check_id(format_args!("type {}", id.ty), id.id, r.end - r.start)?;
        Ok(HomoId(r.start + id.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_and_back(counts in proptest::collection::vec(0usize..9, 0..7)) {
            let m = IdMap::from_counts(counts.clone()).unwrap();
            for i in 0..m.total() {
                let t = m.to_typed(HomoId(i)).unwrap();
                prop_assert!((t.id as usize) < counts[t.ty]);
                prop_assert_eq!(m.to_homo(t).unwrap(), HomoId(i));
            }
            prop_assert!(m.to_typed(HomoId(m.total())).is_err());
        }
    }

    #[test]
    fn a_sum_above_u64_is_an_error() {
        let e = IdMap::from_counts([usize::MAX, 1]).unwrap_err();
        assert!(matches!(e, GraphError::TooLarge { what: "ids", .. }), "{e:?}");
    }

    #[test]
    fn out_of_range_is_an_error() {
        let m = IdMap::from_counts([2, 3]).unwrap();
        assert_eq!(
            m.to_homo(TypedId { ty: 0, id: 2 }).unwrap_err().to_string(),
            "type 0 id 2 is out of range 0..2; give ids that are numbered from 0"
        );
        assert_eq!(
            m.to_homo(TypedId { ty: 2, id: 0 }).unwrap_err().to_string(),
            "type id 2 is out of range 0..2; give ids that are numbered from 0"
        );
        assert_eq!(
            m.to_typed(HomoId(5)).unwrap_err().to_string(),
            "homogeneous id 5 is out of range 0..5; give ids that are numbered from 0"
        );
    }
}
