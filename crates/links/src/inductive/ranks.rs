//! Ranks the true entity of each query among fixed false ones.

use burn_gnn_data::{EntityNegatives, Triple};
use burn_gnn_models::ModelError;
use burn_gnn_ops::Stream;

use crate::inductive::fact_graph::FactGraph;
use crate::inductive::query_paths::TailQuery;

/// Metrics of ranks among fixed candidates, over heads and tails. Ties count as the mean of their ranks.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct CandidateRanks {
    /// Number of queries: two per triple.
    pub queries: usize,
    /// Mean reciprocal rank.
    pub mrr: f64,
    /// Share of ranks of at most 1.
    pub hits_at_1: f64,
    /// Share of ranks of at most 10.
    pub hits_at_10: f64,
}

/// A query for the tail and one for the head of each triple. The true entity is the first candidate, and the false ones of
/// `negatives` follow.
///
/// # Errors
/// `negatives` has another number of entities than `per_triple` for each triple and side.
pub fn candidate_queries(
    triples: &[Triple],
    num_relations: usize,
    negatives: &EntityNegatives,
) -> Result<Vec<TailQuery>, ModelError> {
    let expected = triples.len() * negatives.per_triple;
    for (arg, actual) in
        [("negatives.heads", negatives.heads.len()), ("negatives.tails", negatives.tails.len())]
    {
        if actual != expected {
            let why = "`per_triple` for each triple".into();
            return Err(ModelError::Length { arg: arg.into(), why, expected, actual });
        }
    }
    let candidates = |first: u32, rest: &[u32]| {
        let mut all = Vec::with_capacity(rest.len() + 1);
        all.push(first);
        all.extend_from_slice(rest);
        all
    };
    let both = |(i, t): (usize, &Triple)| {
        let tail = TailQuery {
            head: t.head,
            relation: t.relation,
            candidates: candidates(t.tail, negatives.tails_of(i)),
            hidden: vec![],
        };
        let head = TailQuery {
            head: t.tail,
            relation: t.relation + num_relations as u32,
            candidates: candidates(t.head, negatives.heads_of(i)),
            hidden: vec![],
        };
        [tail, head]
    };
    Ok(triples.iter().enumerate().flat_map(both).collect())
}

/// Draws `per_triple` false heads and tails for each triple, uniformly among entities that make no fact of `graph` and
/// no triple of `triples`. After `50 · per_triple` draws, any entity is accepted.
pub(super) fn draw_negatives(
    graph: &FactGraph,
    triples: &FactGraph,
    of: &[Triple],
    per_triple: usize,
    seed: u64,
) -> EntityNegatives {
    let relations = graph.num_relations() as u32;
    let stream = Stream::new(seed, "false entities of validation", 0);
    let draw = |from: u32, relation: u32, id: u64| {
        let mut draws = (0..).map(|i| (stream.uniform(id, i) * graph.num_entities() as f64) as u32);
        let mut found = Vec::with_capacity(per_triple);
        let mut tries = 50 * per_triple;
        while found.len() < per_triple {
            let Some(v) = draws.next() else { break };
            tries = tries.saturating_sub(1);
            let known = graph.contains(from, relation, v) || triples.contains(from, relation, v);
            if !known || tries == 0 {
                found.push(v);
            }
        }
        found
    };
    let (mut heads, mut tails) = (Vec::new(), Vec::new());
    for (i, t) in (0..).zip(of) {
        tails.extend(draw(t.head, t.relation, 2 * i));
        heads.extend(draw(t.tail, t.relation + relations, 2 * i + 1));
    }
    EntityNegatives { per_triple, heads, tails }
}

/// Metrics of the first candidate of every query. `scores` are those of the candidates of all queries, concatenated in the
/// order of the queries. A score that is NaN ranks last, and a true entity with such a score ranks after all others.
///
/// # Errors
/// Another number of scores than candidates, or a query without candidates.
pub fn candidate_ranks(
    queries: &[TailQuery],
    scores: &[f32],
) -> Result<CandidateRanks, ModelError> {
    let expected = queries.iter().map(|q| q.candidates.len()).sum();
    if expected != scores.len() {
        let (arg, why) = ("scores".into(), "one per candidate".into());
        return Err(ModelError::Length { arg, why, expected, actual: scores.len() });
    }
    let (mut mrr, mut first, mut ten) = (0.0, 0usize, 0usize);
    let mut rest = scores;
    for (i, q) in queries.iter().enumerate() {
        let (of_query, after) = rest.split_at(q.candidates.len());
        rest = after;
        let Some((&truth, others)) = of_query.split_first() else {
            return Err(ModelError::Length {
                arg: format!("queries[{i}].candidates"),
                why: "the true entity and others".into(),
                expected: 1,
                actual: 0,
            });
        };
        let mut rank = 1.0;
        for &other in others {
            if truth.is_nan() || other > truth {
                rank += 1.0;
            } else if other == truth {
                rank += 0.5;
            }
        }
        mrr += 1.0 / rank;
        first += usize::from(rank <= 1.0);
        ten += usize::from(rank <= 10.0);
    }
    let n = queries.len().max(1) as f64;
    Ok(CandidateRanks {
        queries: queries.len(),
        mrr: mrr / n,
        hits_at_1: first as f64 / n,
        hits_at_10: ten as f64 / n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(n: u32) -> TailQuery {
        TailQuery { head: 0, relation: 0, candidates: (0..n).collect(), hidden: vec![] }
    }

    #[test]
    fn ties_take_the_mean_rank() {
        let ranks = candidate_ranks(&[query(3), query(2)], &[0.5, 0.5, 0.5, 1.0, 2.0]).unwrap();
        // Ranks 2 and 2.
        assert_eq!(
            (ranks.queries, ranks.mrr, ranks.hits_at_1, ranks.hits_at_10),
            (2, 0.5, 0.0, 1.0)
        );
        let last = candidate_ranks(&[query(12)], &[f32::NAN; 12]).unwrap();
        assert_eq!((last.mrr, last.hits_at_10), (1.0 / 12.0, 0.0));
    }

    #[test]
    fn wrong_lengths_are_errors() {
        let e = candidate_ranks(&[query(3)], &[1.0]).unwrap_err().to_string();
        assert!(e.contains("`scores`: expected 3 (one per candidate), got 1"), "{e}");
        let triples = [Triple { head: 0, relation: 0, tail: 1 }];
        let e = candidate_queries(
            &triples,
            1,
            &EntityNegatives { per_triple: 2, heads: vec![0; 2], tails: vec![] },
        );
        assert!(e.unwrap_err().to_string().contains("`negatives.tails`"));
    }

    #[test]
    fn drawn_negatives_make_no_fact() {
        let facts: Vec<Triple> = (0..6).map(|tail| Triple { head: 6, relation: 0, tail }).collect();
        let graph = FactGraph::new(9, 1, &facts[..3]).unwrap();
        let all = FactGraph::new(9, 1, &facts).unwrap();
        let negatives = draw_negatives(&graph, &all, &facts, 20, 1);
        assert_eq!((negatives.heads.len(), negatives.tails.len()), (120, 120));
        assert!(negatives.tails.iter().all(|&t| !all.contains(6, 0, t)));
        assert_eq!(negatives, draw_negatives(&graph, &all, &facts, 20, 1));
    }
}
