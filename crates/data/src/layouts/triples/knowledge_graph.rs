//! Triples in memory, and the graph for message passing.

use burn_gnn_files::DataError;
use burn_gnn_graph::GraphError;
use burn_gnn_graph::{EdgeType, Graph};

/// A fact: the entities `head` and `tail` are connected by `relation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Triple {
    /// Number of the head entity.
    pub head: u32,
    /// Number of the relation.
    pub relation: u32,
    /// Number of the tail entity.
    pub tail: u32,
}

impl Triple {
    /// The reversed triple, with relation `r + num_relations`. Ranking the heads of a triple is the same as ranking the
    /// tails of its reciprocal (Lacroix, Usunier, Obozinski, ICML 2018).
    #[must_use]
    pub fn reciprocal(self, num_relations: u32) -> Self {
        Self { head: self.tail, relation: self.relation + num_relations, tail: self.head }
    }
}

/// A knowledge graph: training, validation and test triples, and the names of entities and relations.
///
/// Entities and relations are numbered from 0 in the order of the lists of names. Readers check that all numbers in triples
/// are in range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnowledgeGraph {
    /// Short name.
    pub name: String,
    /// Name of each entity.
    pub entities: Vec<String>,
    /// Name of each relation.
    pub relations: Vec<String>,
    /// Training triples. Only these are used for message passing.
    pub train: Vec<Triple>,
    /// Validation triples.
    pub valid: Vec<Triple>,
    /// Test triples.
    pub test: Vec<Triple>,
}

impl KnowledgeGraph {
    /// The graph for message passing in a relational model.
    ///
    /// It has the node type `entity`. Relation `r` is the edge type number `2 r`, with its training triples from head to
    /// tail in their order, and edge type number `2 r + 1` contains the reversed edges. A relation without training triples
    /// has edge types without edges.
    ///
    /// ```
    /// use burn_gnn_data::{KnowledgeGraph, Triple};
    ///
    /// fn main() -> Result<(), burn_gnn_data::DataError> {
    ///     let names = |n: &[&str]| n.iter().map(|n| n.to_string()).collect();
    ///     let family = KnowledgeGraph {
    ///         entities: names(&["Ann", "Bo"]),
    ///         relations: names(&["parent of", "sibling of"]),
    ///         train: vec![Triple { head: 0, relation: 0, tail: 1 }],
    ///         ..KnowledgeGraph::default()
    ///     };
    ///     let g = family.train_graph()?;
    ///     assert_eq!((g.num_nodes("entity")?, g.relations().len()), (2, 4));
    ///     assert_eq!((g.relations()[0].src(), g.relations()[1].src()), (&[0][..], &[1][..]));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// A training triple has a number that is out of range, or a relation has too many edges.
    pub fn train_graph(&self) -> Result<Graph, DataError> {
        const ENTITY: &str = "entity";
        let mut endpoints = vec![(vec![], vec![]); self.relations.len()];
        for t in &self.train {
            let bound = endpoints.len() as u64;
            let of_relation = endpoints.get_mut(t.relation as usize);
            let (heads, tails) = of_relation.ok_or_else(|| {
                DataError::Graph(GraphError::IdOutOfRange {
                    what: "relation".into(),
                    id: u64::from(t.relation),
                    bound,
                })
            })?;
            heads.push(t.head);
            tails.push(t.tail);
        }
        // Names of relations may contain characters that are not allowed in names of edge types, so numbers are used. Edge
        // types are sorted by name; leading zeros keep the order of the numbers.
        let width = endpoints.len().saturating_sub(1).to_string().len();
        let mut builder = Graph::builder().nodes(ENTITY, self.entities.len());
        for (r, (heads, tails)) in endpoints.into_iter().enumerate() {
            builder =
                builder.edges(EdgeType::new(ENTITY, format!("{r:0width$}"), ENTITY), heads, tails);
        }
        Ok(builder.build()?.with_inverse_relations("-inv")?)
    }
}
