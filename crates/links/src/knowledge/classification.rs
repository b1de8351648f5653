//! Classifies triples as true or false by a threshold per relation.

use burn_gnn_data::Triple;
use burn_gnn_models::ModelError;

use crate::errors::{check_length, check_range, out_of_range};

/// Thresholds of scores, one per relation, above which a triple is true: the classification of triples against hard
/// negatives, such as those of CoDEx ([`load_triple_negatives`](burn_gnn_data::load_triple_negatives)).
///
/// ```text
/// true if s(h, r, t) ≥ threshold[r]
/// ```
///
/// # Source
/// Socher et al., "Reasoning with neural tensor networks for knowledge base completion", NeurIPS 2013; Safavi and Koutra,
/// "CoDEx", EMNLP 2020.
///
/// ```
/// use burn_gnn_data::Triple;
/// use burn_gnn_links::TripleThresholds;
/// let triple = |relation, tail| Triple { head: 0, relation, tail };
/// let (facts, false_ones) = ([triple(0, 1), triple(1, 1)], [triple(0, 2), triple(1, 2)]);
/// let by = TripleThresholds::fit(2, (&facts, &[5.0, 0.75]), (&false_ones, &[3.0, 0.25]))?;
/// assert_eq!((by.of(0), by.of(1)), (4.0, 0.5)); // in the middle
/// let found = by.evaluate((&facts, &[4.5, 0.1]), (&false_ones, &[3.5, 0.1]))?;
/// assert_eq!((found.accuracy, found.precision, found.recall), (0.75, 1.0, 0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TripleThresholds {
    /// Threshold of each relation with validation triples.
    thresholds: Vec<Option<f64>>,
    /// Threshold of all others.
    overall: f64,
}

/// Figures of a classification of triples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TripleClassification {
    /// Number of triples.
    pub triples: usize,
    /// Share of triples that are classified correctly, in `0.0..=1.0`.
    pub accuracy: f64,
    /// Share of facts among the triples that are classified as true; 0 without any.
    pub precision: f64,
    /// Share of facts that are classified as true; 0 without facts.
    pub recall: f64,
    /// Harmonic mean of precision and recall; 0 if both are 0.
    pub f1: f64,
}

impl TripleThresholds {
    /// Chooses the threshold of each relation that classifies most of its validation triples correctly: in the middle
    /// between two neighbouring scores, and the largest of equally good ones. A relation without validation triples gets the
    /// threshold that is best over all of them.
    ///
    /// `facts` and `false_ones` are true and false triples with their scores.
    ///
    /// # Errors
    /// No triple; other numbers of scores than triples; a relation out of range; a score that is not a number.
    ///
    /// # Cost
    /// `O(triples log triples)`.
    pub fn fit(
        num_relations: usize,
        facts: (&[Triple], &[f64]),
        false_ones: (&[Triple], &[f64]),
    ) -> Result<Self, ModelError> {
        let mut scored = scored(facts, false_ones)?;
        let range = format!("0..{num_relations}");
        if let Some((r, ..)) = scored.iter().find(|(r, ..)| *r as usize >= num_relations) {
            return Err(out_of_range("relation", range, r));
        }
        check_range("triples", "lists with at least one triple", "none", !scored.is_empty())?;
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        let overall = best(&scored);
        // Stable: scores of one relation stay in descending order.
        scored.sort_by_key(|(relation, ..)| *relation);
        let mut thresholds = vec![None; num_relations];
        for group in scored.chunk_by(|a, b| a.0 == b.0) {
            thresholds[group[0].0 as usize] = Some(best(group));
        }
        Ok(Self { thresholds, overall })
    }

    /// Threshold of a relation.
    pub fn of(&self, relation: u32) -> f64 {
        self.thresholds.get(relation as usize).copied().flatten().unwrap_or(self.overall)
    }

    /// Classifies true and false triples by their scores.
    ///
    /// # Errors
    /// Other numbers of scores than triples; a score that is not a number.
    pub fn evaluate(
        &self,
        facts: (&[Triple], &[f64]),
        false_ones: (&[Triple], &[f64]),
    ) -> Result<TripleClassification, ModelError> {
        let scored = scored(facts, false_ones)?;
        let (mut hits, mut found, mut correct) = (0, 0, 0);
        for &(relation, score, is_fact) in &scored {
            let is_found = score >= self.of(relation);
            found += usize::from(is_found);
            hits += usize::from(is_found && is_fact);
            correct += usize::from(is_found == is_fact);
        }
        let share = |a: usize, b: usize| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        let (precision, recall) = (share(hits, found), share(hits, facts.0.len()));
        let f1 = share(2 * hits, found + facts.0.len());
        let accuracy = share(correct, scored.len());
        Ok(TripleClassification { triples: scored.len(), accuracy, precision, recall, f1 })
    }
}

/// Relation, score and truth of triples.
fn scored(
    facts: (&[Triple], &[f64]),
    false_ones: (&[Triple], &[f64]),
) -> Result<Vec<(u32, f64, bool)>, ModelError> {
    let mut all = Vec::with_capacity(facts.0.len() + false_ones.0.len());
    for ((triples, scores), is_fact) in [(facts, true), (false_ones, false)] {
        check_length("scores", "one per triple", triples.len(), scores.len())?;
        for (triple, &score) in triples.iter().zip(scores) {
            check_range("scores", "numbers", score, !score.is_nan())?;
            all.push((triple.relation, score, is_fact));
        }
    }
    Ok(all)
}

/// The best threshold of triples whose scores descend.
fn best(scored: &[(u32, f64, bool)]) -> f64 {
    // Above all scores, every triple is false.
    let mut correct = scored.iter().filter(|(.., is_fact)| !is_fact).count() as i64;
    let (mut most, mut threshold) = (correct, f64::INFINITY);
    let mut rest = scored;
    while let Some(&(_, score, _)) = rest.first() {
        let equal = rest.partition_point(|(_, s, _)| *s >= score);
        let (group, lower) = rest.split_at(equal);
        correct += group.iter().map(|(.., is_fact)| if *is_fact { 1 } else { -1 }).sum::<i64>();
        if correct > most {
            most = correct;
            threshold = lower.first().map_or(score, |(_, next, _)| score / 2.0 + next / 2.0);
            // Of scores that are infinite or next to each other there is no middle.
            if !(threshold > lower.first().map_or(f64::NEG_INFINITY, |l| l.1) && threshold <= score)
            {
                threshold = score;
            }
        }
        rest = lower;
    }
    threshold
}
