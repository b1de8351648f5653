//! Training examples: an entity and a relation with their answers.

use burn_gnn_data::Triple;
use burn_gnn_models::ModelError;

/// Training examples. The answers of relation `r + relations` are heads of `r`.
#[derive(Clone, Debug, Default)]
pub(super) struct Queries {
    pub(super) given: Vec<u32>,
    pub(super) relations: Vec<u32>,
    /// Answers of example `i`: `answers[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    answers: Vec<u32>,
}

/// Triples, and then their reciprocals.
pub(super) fn both_ways(triples: &[Triple], num_relations: usize) -> Vec<Triple> {
    let reciprocal = triples.iter().map(|t| t.reciprocal(num_relations as u32));
    triples.iter().copied().chain(reciprocal).collect()
}

/// Checks the numbers of triples.
pub(super) fn check_triples(
    name: &str,
    triples: &[Triple],
    num_entities: usize,
    num_relations: usize,
) -> Result<(), ModelError> {
    for (i, t) in triples.iter().enumerate() {
        for (arg, id, count) in [
            ("head", t.head, num_entities),
            ("relation", t.relation, num_relations),
            ("tail", t.tail, num_entities),
        ] {
            if id as usize >= count {
                let arg = format!("{name}[{i}].{arg}");
                return Err(ModelError::out_of_range(arg, format!("0..{count}"), id));
            }
        }
    }
    Ok(())
}

impl Queries {
    /// One example per triple and direction.
    pub(super) fn of_triples(triples: &[Triple], num_relations: usize) -> Self {
        let mut out = Self { starts: vec![0], ..Self::default() };
        for t in both_ways(triples, num_relations) {
            out.push(&t, [t.tail]);
        }
        out
    }

    /// One example per different pair of entity and relation.
    pub(super) fn grouped(triples: &[Triple], num_relations: usize) -> Self {
        let mut all = both_ways(triples, num_relations);
        all.sort_unstable();
        all.dedup();
        let mut out = Self { starts: vec![0], ..Self::default() };
        for group in all.chunk_by(|a, b| (a.head, a.relation) == (b.head, b.relation)) {
            out.push(&group[0], group.iter().map(|t| t.tail));
        }
        out
    }

    fn push(&mut self, first: &Triple, answers: impl IntoIterator<Item = u32>) {
        self.given.push(first.head);
        self.relations.push(first.relation);
        self.answers.extend(answers);
        self.starts.push(self.answers.len());
    }

    pub(super) fn len(&self) -> usize {
        self.given.len()
    }

    pub(super) fn answers(&self, i: usize) -> &[u32] {
        &self.answers[self.starts[i]..self.starts[i + 1]]
    }
}
