//! Entities that occur at each end of each relation.

use burn_gnn_data::Triple;

/// Entities that occur as head or tail of each relation in a set of triples: candidates of plausible types.
///
/// Relation `r` in `0..relations` stands for tails, `r + relations` for heads, as in
/// [`Triple::reciprocal`].
///
/// # Source
/// Krompaß, Baier, Tresp, "Type-constrained representation learning in knowledge graphs", ISWC 2015 (local closed-world
/// assumption).
///
/// ```
/// use burn_gnn_data::Triple;
/// use burn_gnn_links::TypeConstraints;
/// let triples = [Triple { head: 0, relation: 0, tail: 3 }, Triple { head: 1, relation: 0, tail: 2 }];
/// let types = TypeConstraints::new(&triples, 1);
/// assert_eq!((types.of(0), types.of(1)), (&[2, 3][..], &[0, 1][..])); // tails, heads
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeConstraints {
    /// Ascending entities of relations, tails and then heads.
    entities: Vec<Vec<u32>>,
}

impl TypeConstraints {
    /// Of triples with relations below `num_relations`.
    ///
    /// # Panics
    /// A relation is out of range.
    #[track_caller]
    pub fn new(triples: &[Triple], num_relations: usize) -> Self {
        let mut entities = vec![vec![]; 2 * num_relations];
        for t in triples {
            let r = t.relation as usize;
            assert!(
                r < num_relations,
                "type_constraints: `relation` must lie in 0..{num_relations}, got {r}"
            );
            entities[r].push(t.tail);
            entities[r + num_relations].push(t.head);
        }
        for list in &mut entities {
            list.sort_unstable();
            list.dedup();
        }
        Self { entities }
    }

    /// Entities that occur as tails of relation `relation`, or as heads of `relation - relations`, ascending; none for a
    /// relation that has no triple.
    pub fn of(&self, relation: u32) -> &[u32] {
        self.entities.get(relation as usize).map_or(&[], |list| list)
    }

    /// Whether an entity occurs there.
    pub fn contains(&self, relation: u32, entity: u32) -> bool {
        self.of(relation).binary_search(&entity).is_ok()
    }
}
