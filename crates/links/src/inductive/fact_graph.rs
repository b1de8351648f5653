//! The facts of a knowledge graph by entity, in both directions.

use burn_gnn_data::{KnowledgeGraph, Triple};
use burn_gnn_graph::GraphError;

/// The facts of a knowledge graph by entity. Every fact `(h, r, t)` is an edge from `h` to `t` with relation `r`, and its
/// reciprocal an edge from `t` to `h` with relation `r + num_relations`. A repeated fact is stored once.
#[derive(Clone, Debug)]
pub struct FactGraph {
    num_relations: u32,
    offsets: Vec<usize>,
    /// Endpoint and relation of each edge, ascending for each entity.
    edges: Vec<(u32, u32)>,
}

impl FactGraph {
    /// Stores the facts of `num_entities` entities and `num_relations` relations.
    ///
    /// # Errors
    /// A number of an entity or relation is out of range.
    pub fn new(
        num_entities: usize,
        num_relations: usize,
        facts: &[Triple],
    ) -> Result<Self, GraphError> {
        let check = |what: &str, id: u32, bound: usize| {
            if (id as usize) < bound {
                return Ok(());
            }
            let (id, bound) = (u64::from(id), bound as u64);
            Err(GraphError::IdOutOfRange { what: what.into(), id, bound })
        };
        let mut edges = Vec::with_capacity(2 * facts.len());
        let relations = num_relations as u32;
        for t in facts {
            check("head", t.head, num_entities)?;
            check("relation", t.relation, num_relations)?;
            check("tail", t.tail, num_entities)?;
            edges.push((t.head, t.tail, t.relation));
            edges.push((t.tail, t.head, t.relation + relations));
        }
        edges.sort_unstable();
        edges.dedup();
        let mut offsets = vec![0; num_entities + 1];
        for &(from, ..) in &edges {
            offsets[from as usize + 1] += 1;
        }
        for v in 0..num_entities {
            offsets[v + 1] += offsets[v];
        }
        let edges = edges.into_iter().map(|(_, to, relation)| (to, relation)).collect();
        Ok(Self { num_relations: relations, offsets, edges })
    }

    /// The training facts of a knowledge graph.
    ///
    /// # Errors
    /// A number of an entity or relation is out of range.
    pub fn of_training(kg: &KnowledgeGraph) -> Result<Self, GraphError> {
        Self::new(kg.entities.len(), kg.relations.len(), &kg.train)
    }

    /// Number of entities.
    pub fn num_entities(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of relations without reciprocal ones.
    pub fn num_relations(&self) -> usize {
        self.num_relations as usize
    }

    /// Edges that leave an entity, as endpoints and relations in `0..2 · num_relations`, ascending.
    ///
    /// # Panics
    /// If there is no such entity.
    pub fn edges_of(&self, entity: u32) -> &[(u32, u32)] {
        &self.edges[self.offsets[entity as usize]..self.offsets[entity as usize + 1]]
    }

    /// The reciprocal of a relation in `0..2 · num_relations`.
    pub fn reciprocal(&self, relation: u32) -> u32 {
        if relation < self.num_relations {
            relation + self.num_relations
        } else {
            relation - self.num_relations
        }
    }

    /// Whether there is an edge with `relation` (in `0..2 · num_relations`) from `head` to `tail`.
    pub fn contains(&self, head: u32, relation: u32, tail: u32) -> bool {
        self.edges_of(head).binary_search(&(tail, relation)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple(head: u32, relation: u32, tail: u32) -> Triple {
        Triple { head, relation, tail }
    }

    #[test]
    fn facts_have_two_directions_and_are_stored_once() {
        let facts = [triple(0, 1, 2), triple(0, 0, 1), triple(0, 1, 2)];
        let graph = FactGraph::new(3, 2, &facts).unwrap();
        assert_eq!(graph.edges_of(0), [(1, 0), (2, 1)]);
        assert_eq!(graph.edges_of(2), [(0, 3)]);
        assert!(graph.contains(0, 1, 2) && graph.contains(2, 3, 0) && !graph.contains(2, 1, 0));
        assert_eq!((graph.reciprocal(1), graph.reciprocal(3)), (3, 1));
    }

    #[test]
    fn numbers_out_of_range_are_errors() {
        let far = FactGraph::new(2, 1, &[triple(0, 0, 2)]).unwrap_err();
        assert!(matches!(far, GraphError::IdOutOfRange { id: 2, bound: 2, .. }), "{far}");
        let far = FactGraph::new(2, 1, &[triple(0, 1, 1)]).unwrap_err();
        assert!(matches!(far, GraphError::IdOutOfRange { id: 1, bound: 1, .. }), "{far}");
    }
}
