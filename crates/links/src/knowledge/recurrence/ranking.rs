//! Ranks the entities of facts, time step by time step.

use burn_gnn_data::TimedTriple;
use burn_gnn_models::ModelError;
use rayon::prelude::*;

use super::model::FactRecurrence;
use super::past::Past;
use super::scores::QueryScores;
use crate::knowledge::kge::KgeRanks;

impl FactRecurrence {
    /// Ranks of the tails and heads of `facts` among all entities; equal scores share their mean rank. No fact is left
    /// out of the ranking ("raw"). Each time step reads `past` and the facts of earlier steps ("single step").
    ///
    /// # Errors
    /// Facts that are not sorted by time, that begin before the end of `past`, or that have an entity or relation which
    /// the model does not have.
    pub fn ranks(
        &self,
        past: &[TimedTriple],
        facts: &[TimedTriple],
    ) -> Result<KgeRanks, ModelError> {
        self.check("past", past, 0)?;
        self.check("facts", facts, past.last().map_or(0, |f| f.time + 1))?;
        let mut before = Past::new(self.num_entities, self.num_relations, &self.decays);
        past.iter().for_each(|fact| before.add(fact));
        let mut ranks = KgeRanks::default();
        for step in facts.chunk_by(|a, b| a.time == b.time) {
            let rank = |scores: &mut QueryScores, fact: &TimedTriple| {
                let reciprocal = fact.relation + self.num_relations as u32;
                self.score(&before, (fact.head, fact.relation), fact.time, scores);
                let tail = scores.rank(fact.tail);
                self.score(&before, (fact.tail, reciprocal), fact.time, scores);
                (tail, scores.rank(fact.head))
            };
            let new = || QueryScores::new(self.num_entities);
            let found: Vec<(f64, f64)> =
                step.par_iter().with_min_len(16).map_init(new, rank).collect();
            ranks.tails.extend(found.iter().map(|r| r.0));
            ranks.heads.extend(found.iter().map(|r| r.1));
            step.iter().for_each(|fact| before.add(fact));
        }
        Ok(ranks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(time: u32, head: u32, relation: u32, tail: u32) -> TimedTriple {
        TimedTriple { time, head, relation, tail }
    }

    #[test]
    fn ties_share_their_mean_rank() {
        let model = FactRecurrence::recent_and_frequent(4, 1, 10);
        let ranks = model.ranks(&[fact(0, 0, 0, 1)], &[fact(1, 0, 0, 1), fact(1, 0, 0, 2)]);
        // Entities 0, 2 and 3 are never tails of the relation.
        assert_eq!(ranks.unwrap().tails, [1.0, 3.0]);
    }

    #[test]
    fn facts_out_of_range_are_errors() {
        let model = FactRecurrence::recent_and_frequent(4, 1, 10);
        let e = model.ranks(&[fact(3, 0, 0, 1)], &[fact(3, 0, 0, 1)]).unwrap_err().to_string();
        assert!(e.contains("facts[0].time"), "{e}");
        let e = model.ranks(&[], &[fact(3, 0, 0, 4)]).unwrap_err().to_string();
        assert!(e.contains("facts[0].tail"), "{e}");
    }
}
