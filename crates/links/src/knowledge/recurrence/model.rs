//! Defines `FactRecurrence`: a log-linear model of earlier facts.

use std::sync::Arc;

use burn_gnn_data::TimedTriple;
use burn_gnn_models::ModelError;

use super::past::{Decays, FEATURES, Past};
use super::scores::QueryScores;
use crate::errors::out_of_range;

/// Kinds of earlier facts with weights that all relations share: of the same relation, of its reciprocal, of another
/// relation, and of the same relation with any entity.
pub(super) const KINDS: usize = 4;
pub(super) const ANY_ENTITY: usize = 3;

/// Scores the tails of `(h, r, ?)` at a time by the facts before it. Heads are tails of reciprocal relations.
///
/// ```text
/// s(h, r, v, t) = Σ (w[r, r'] + w[kind]) · f(h, r', v)   over relations r' of earlier facts (h, r', v)
///               + (u[r] + u) · f(·, r, v)                 if v was a tail of r before
/// f = [1, exp(-g / τ₁), exp(-g / τ₂), exp(-g / τ₃), ln(1 + n) / 2, ln(1 + m)]
/// ```
///
/// `g` is the time since the last such fact, `n` the number of them, and `m` the number with weights `exp(-age / 2 τ₂)`.
/// The kinds of `r'` are `r`, its reciprocal and other relations. `τ₁` is two steps, `τ₃` a sixth of the training
/// time, and `τ₂` their geometric mean. All other entities have the score 0. Weights are learned by softmax cross entropy
/// over all entities.
///
/// The first sum contains the cyclic rules of length one of TLogic (Liu, Ma, Hildebrandt, Joblin, Tresp, AAAI 2022) with
/// learned weights instead of confidences.
///
/// # Cost
/// A query costs the earlier pairs of its entity and the earlier entities of its relation. There are `24 R²` weights.
#[derive(Clone, Debug)]
pub struct FactRecurrence {
    pub(super) num_entities: usize,
    pub(super) num_relations: usize,
    pub(super) decays: Arc<Decays>,
    /// `[2 R, 2 R, FEATURES]`.
    pub(super) pairs: Vec<f32>,
    /// `[2 R, FEATURES]`.
    pub(super) popular: Vec<f32>,
    /// `[KINDS, FEATURES]`.
    pub(super) shared: [f32; KINDS * FEATURES],
}

fn dot(weights: &[f32], shared: &[f32], features: &[f32; FEATURES]) -> f32 {
    weights.iter().zip(shared).zip(features).map(|((w, s), x)| (w + s) * x).sum()
}

impl FactRecurrence {
    /// A model without learned weights: an entity ranks by how recently and how often it was the answer of the same query,
    /// then by how often it was an answer of the relation. `last` is the last training time.
    pub fn recent_and_frequent(num_entities: usize, num_relations: usize, last: u32) -> Self {
        let mut model = Self::new(num_entities, num_relations, last);
        model.shared[..FEATURES].copy_from_slice(&[20.0, 2.0, 2.0, 2.0, 1.0, 2.0]);
        model.shared[ANY_ENTITY * FEATURES + 4] = 1.0;
        model
    }

    /// A model whose weights are 0. `last` is the last training time.
    pub(super) fn new(num_entities: usize, num_relations: usize, last: u32) -> Self {
        let relations = 2 * num_relations;
        Self {
            num_entities,
            num_relations,
            decays: Arc::new(Decays::new(last)),
            pairs: vec![0.0; relations * relations * FEATURES],
            popular: vec![0.0; relations * FEATURES],
            shared: [0.0; KINDS * FEATURES],
        }
    }

    /// Place in `pairs` of a relation of earlier facts, and that of its kind in `shared`.
    pub(super) fn places(&self, relation: u32, earlier: u32) -> (usize, usize) {
        let count = self.num_relations as u32;
        let reciprocal = if relation < count { relation + count } else { relation - count };
        let kind = match earlier {
            r if r == relation => 0,
            r if r == reciprocal => 1,
            _ => 2,
        };
        let at = relation as usize * 2 * self.num_relations + earlier as usize;
        (at * FEATURES, kind * FEATURES)
    }

    /// Writes the scores of `(head, relation, ?)` at a time.
    pub(super) fn score(
        &self,
        past: &Past,
        (head, relation): (u32, u32),
        time: u32,
        scores: &mut QueryScores,
    ) {
        scores.clear();
        for seen in &past.of_entity[head as usize] {
            let features = past.features(seen, time);
            let (at, kind) = self.places(relation, seen.relation);
            let score = dot(&self.pairs[at..at + FEATURES], &self.shared[kind..], &features);
            scores.features.push(features);
            scores.add(seen.other, score);
        }
        let at = relation as usize * FEATURES;
        for seen in &past.of_relation[relation as usize] {
            let features = past.features(seen, time);
            let shared = &self.shared[ANY_ENTITY * FEATURES..];
            let score = dot(&self.popular[at..at + FEATURES], shared, &features);
            scores.features.push(features);
            scores.add(seen.other, score);
        }
    }

    /// Checks that facts are sorted by time from `first` on and in range.
    pub(super) fn check(
        &self,
        arg: &str,
        facts: &[TimedTriple],
        first: u32,
    ) -> Result<(), ModelError> {
        let mut time = first;
        for (i, f) in facts.iter().enumerate() {
            if f.time < time {
                return Err(out_of_range(format!("{arg}[{i}].time"), format!("{time}.."), f.time));
            }
            time = f.time;
            for (name, id, count) in [
                ("head", f.head, self.num_entities),
                ("relation", f.relation, self.num_relations),
                ("tail", f.tail, self.num_entities),
            ] {
                if id as usize >= count {
                    let arg = format!("{arg}[{i}].{name}");
                    return Err(out_of_range(arg, format!("0..{count}"), id));
                }
            }
        }
        Ok(())
    }
}
