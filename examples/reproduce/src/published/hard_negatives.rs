//! Classification of true triples and hard negatives, with a threshold per relation from validation.

use std::collections::HashMap;

use anyhow::Result;
use burn_gnn::data::{KnowledgeGraph, Triple, TripleNegatives};
use burn_gnn_links::{Kge, TripleThresholds};

pub(super) const PROTOCOL: &str = "true triples against the set's hard negatives; a threshold per relation, chosen on those of validation";

/// Accuracy of the best model of each set (README of CoDEx).
pub(super) const PUBLISHED: [(&str, f64); 2] = [("codex_m", 0.82), ("codex_s", 0.84)];

/// Accuracy on test triples of a model.
pub(super) fn accuracy(
    model: &Kge,
    kg: &KnowledgeGraph,
    negatives: &TripleNegatives,
) -> Result<f64> {
    classify(kg, negatives, |triples| Ok(model.score(triples)?.into_data().iter::<f64>().collect()))
}

/// Accuracy on test triples of the number of facts that a tail has with a relation.
pub(super) fn baseline(kg: &KnowledgeGraph, negatives: &TripleNegatives) -> Result<f64> {
    let mut counts = HashMap::new();
    kg.train.iter().for_each(|t| *counts.entry((t.relation, t.tail)).or_insert(0u32) += 1);
    let count = |t: &Triple| f64::from(counts.get(&(t.relation, t.tail)).copied().unwrap_or(0));
    classify(kg, negatives, |triples| Ok(triples.iter().map(count).collect()))
}

fn classify(
    kg: &KnowledgeGraph,
    negatives: &TripleNegatives,
    score: impl Fn(&[Triple]) -> Result<Vec<f64>>,
) -> Result<f64> {
    let (facts, false_ones) = (score(&kg.valid)?, score(&negatives.valid)?);
    let of_valid = ((&kg.valid[..], &facts[..]), (&negatives.valid[..], &false_ones[..]));
    let by = TripleThresholds::fit(kg.relations.len(), of_valid.0, of_valid.1)?;
    let (facts, false_ones) = (score(&kg.test)?, score(&negatives.test)?);
    Ok(by.evaluate((&kg.test, &facts), (&negatives.test, &false_ones))?.accuracy)
}
