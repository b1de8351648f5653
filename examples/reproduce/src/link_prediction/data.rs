//! Loads a knowledge graph from files, or makes one of the crates graph.

use std::path::Path;

use anyhow::{Context, Result};
use burn_gnn::data::{KnowledgeGraph, Triple, crates_graph, load_knowledge_graph};
use burn_gnn::ops::Stream;

/// The knowledge graph in `dir`, or the crates graph as one: every node is an entity, every edge type a relation, and
/// each edge goes to train, valid or test with probabilities 0.8, 0.1 and 0.1, whatever the seed of the run.
pub(crate) fn load(dir: Option<&Path>) -> Result<KnowledgeGraph> {
    if let Some(dir) = dir {
        return load_knowledge_graph(dir).with_context(|| format!("loading {}", dir.display()));
    }
    let graph = crates_graph().graph;
    let schema = graph.schema();
    // Entities are numbered type by type.
    let mut first = vec![];
    let mut kg = KnowledgeGraph { name: "crates".into(), ..KnowledgeGraph::default() };
    for (ntype, &count) in schema.ntypes().iter().zip(graph.node_counts()) {
        first.push(kg.entities.len() as u32);
        kg.entities.extend((0..count).map(|i| format!("{ntype} {i}")));
    }
    for (r, etype) in schema.etypes().iter().enumerate() {
        kg.relations.push(etype.relation.clone());
        let (relation, (src, dst)) = (&graph.relations()[r], schema.endpoints(r));
        let draws = Stream::new(0, &format!("split/{etype}"), 0);
        for (i, (u, v)) in relation.src().iter().zip(relation.dst()).enumerate() {
            let part = match draws.uniform(i as u64, 0) {
                p if p < 0.8 => &mut kg.train,
                p if p < 0.9 => &mut kg.valid,
                _ => &mut kg.test,
            };
            part.push(Triple { head: first[src] + u, relation: r as u32, tail: first[dst] + v });
        }
    }
    Ok(kg)
}
