//! Scores candidates without learning: by popularity, and by nearness in the graph.

use crate::inductive::fact_graph::FactGraph;
use crate::inductive::query_paths::TailQuery;

/// Scores each candidate by the number of facts that it has at that end of the relation, then by its degree. Scores are
/// concatenated in the order of the queries.
///
/// # Panics
/// If an entity is out of range.
pub fn popularity_scores(graph: &FactGraph, queries: &[TailQuery]) -> Vec<f32> {
    let score = |q: &TailQuery, &v: &u32| popularity(graph, q.relation, v) as f32;
    queries.iter().flat_map(|q| q.candidates.iter().map(move |v| score(q, v))).collect()
}

/// Scores each candidate by its distance from the head of the query (1, 2, 3 or more edges), then by popularity. Scores are
/// concatenated in the order of the queries.
///
/// # Panics
/// If an entity is out of range.
///
/// # Cost
/// A breadth-first search of three edges per query.
pub fn nearness_scores(graph: &FactGraph, queries: &[TailQuery]) -> Vec<f32> {
    let mut distance = vec![u8::MAX; graph.num_entities()];
    let mut scores = Vec::new();
    for q in queries {
        let mut order = vec![q.head];
        distance[q.head as usize] = 0;
        let mut next = 0;
        while next < order.len() && distance[order[next] as usize] < 3 {
            let v = order[next];
            next += 1;
            for &(u, _) in graph.edges_of(v) {
                if distance[u as usize] == u8::MAX {
                    distance[u as usize] = distance[v as usize] + 1;
                    order.push(u);
                }
            }
        }
        for &v in &q.candidates {
            // 3, 2 and 1 for distances of 1, 2 and 3. The head itself counts as far away.
            let near = match distance[v as usize] {
                d @ 1..=3 => 4 - d,
                _ => 0,
            };
            let popularity = popularity(graph, q.relation, v);
            scores.push(f32::from(near) + (popularity / (1.0 + popularity)) as f32);
        }
        for v in order {
            distance[v as usize] = u8::MAX;
        }
    }
    scores
}

/// Number of facts with `v` as the tail of `relation`, plus a fraction below 1 that grows with the degree.
fn popularity(graph: &FactGraph, relation: u32, v: u32) -> f64 {
    let reciprocal = graph.reciprocal(relation);
    let edges = graph.edges_of(v);
    let count = edges.iter().filter(|&&(_, r)| r == reciprocal).count() as f64;
    let degree = edges.len() as f64;
    count + degree / (1.0 + degree)
}

#[cfg(test)]
mod tests {
    use burn_gnn_data::Triple;

    use super::*;

    #[test]
    fn near_candidates_come_first_then_popular_ones() {
        let facts = [(0, 0, 1), (1, 0, 2), (3, 0, 4), (5, 0, 4), (3, 1, 5)];
        let facts = facts.map(|(head, relation, tail)| Triple { head, relation, tail });
        let graph = FactGraph::new(7, 2, &facts).unwrap();
        let q = TailQuery { head: 0, relation: 0, candidates: vec![1, 2, 4, 5, 6], hidden: vec![] };
        let near = nearness_scores(&graph, std::slice::from_ref(&q));
        assert!(near.is_sorted_by(|a, b| a > b), "{near:?}");
        let popular = popularity_scores(&graph, &[q]);
        // Entity 4 is the tail of relation 0 twice; entity 5 never is, and has a degree of 2.
        assert!(popular[2] > popular[0] && popular[0] > popular[3] && popular[3] > popular[4]);
    }
}
