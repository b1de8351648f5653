//! Ids by the names of types.

use crate::{GraphError, HomoId, IdMap, TypedId};

/// Type-wise ids to one joint numbering and back, by the names of types, in an order of types that was given: the `IDConverter` of
/// DGL's user guide, with ids on a boundary of two types counted to the later one (the guide's own counts them to the earlier).
///
/// The order is that of the description it was made of (of [`load_chunked`](crate::io::load_chunked)), which need not be the sorted
/// one of a [`Graph`](crate::Graph): joint ids in files follow it, those of [`Graph::to_homogeneous`](crate::Graph::to_homogeneous) do
/// not. Type-wise ids are the same in both.
///
/// ```
/// use burn_gnn_graph::{HomoId, IdConverter};
/// let ids = IdConverter::new([("paper", 200), ("author", 200)])?;
/// assert_eq!(ids.to_typed(HomoId(0))?, ("paper", 0));
/// assert_eq!((ids.to_typed(HomoId(199))?, ids.to_typed(HomoId(200))?), (("paper", 199), ("author", 0)));
/// assert_eq!(ids.to_homo("author", 1)?, HomoId(201));
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdConverter {
    names: Vec<String>,
    map: IdMap,
}

impl IdConverter {
    /// From types and their numbers of nodes or edges, in the order of the joint numbering.
    ///
    /// # Errors
    /// [`GraphError::Duplicate`] for a type given twice; counts that add up to more than `u64::MAX`.
    pub fn new(types: impl IntoIterator<Item = (impl Into<String>, usize)>) -> Result<Self, GraphError> {
        let (names, counts): (Vec<String>, Vec<usize>) = types.into_iter().map(|(name, count)| (name.into(), count)).unzip();
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if let Some(w) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(GraphError::Duplicate { what: "type", name: w[0].clone() });
        }
        Ok(Self { map: IdMap::from_counts(counts)?, names })
    }
    /// Names of the types, in their order.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// The map by the numbers of types.
    pub fn map(&self) -> &IdMap {
        &self.map
    }
    /// Type and type-wise id of a joint id.
    ///
    /// # Errors
    /// The id is not below the number of all ids.
    pub fn to_typed(&self, id: HomoId) -> Result<(&str, u64), GraphError> {
        let TypedId { ty, id } = self.map.to_typed(id)?;
        Ok((&self.names[ty], id))
    }
    /// Joint id of a type-wise id.
    ///
    /// # Errors
    /// [`GraphError::UnknownNodeType`] for a name that is none; the type has no such id.
    pub fn to_homo(&self, name: &str, id: u64) -> Result<HomoId, GraphError> {
        let ty = self.names.iter().position(|n| n == name);
        let ty = ty.ok_or_else(|| GraphError::UnknownNodeType { name: name.to_owned(), known: self.names.clone() })?;
        self.map.to_homo(TypedId { ty, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The row of the table of known bugs: offsets 0, 200, 400.
    #[test]
    fn boundary_ids() {
        let ids = IdConverter::new([("a", 200), ("b", 200)]).unwrap();
        let types = [0, 1, 199, 200, 201, 399].map(|i| ids.to_typed(HomoId(i)).unwrap().0);
        assert_eq!(types, ["a", "a", "a", "b", "b", "b"]);
        assert!(matches!(ids.to_typed(HomoId(400)), Err(GraphError::IdOutOfRange { id: 400, bound: 400, .. })));
        assert!(matches!(ids.to_homo("c", 0), Err(GraphError::UnknownNodeType { .. })));
        assert!(matches!(ids.to_homo("b", 200), Err(GraphError::IdOutOfRange { .. })));
        assert!(matches!(IdConverter::new([("a", 1), ("a", 2)]), Err(GraphError::Duplicate { .. })));
    }

    proptest! {
        #[test]
        fn there_and_back_in_the_order_given(counts in prop::collection::vec(0usize..5, 0..6)) {
            // Names fall while numbers rise, so that sorting would show.
            let named = counts.iter().enumerate().map(|(i, &c)| (format!("t{}", 9 - i), c));
            let ids = IdConverter::new(named).unwrap();
            let mut joint = 0;
            for (i, &c) in counts.iter().enumerate() {
                for id in 0..c as u64 {
                    let name = format!("t{}", 9 - i);
                    prop_assert_eq!(ids.to_homo(&name, id).unwrap(), HomoId(joint));
                    prop_assert_eq!(ids.to_typed(HomoId(joint)).unwrap(), (name.as_str(), id));
                    joint += 1;
                }
            }
            prop_assert!(ids.to_typed(HomoId(joint)).is_err());
        }
    }
}
