//! Trains a `FactRecurrence` by Adagrad, query by query in the order of time.

use std::time::Instant;

use burn_gnn_data::{TemporalKnowledgeGraph, TimedTriple};
use burn_gnn_models::ModelError;

use super::model::{ANY_ENTITY, FactRecurrence, KINDS};
use super::past::{FEATURES, Past};
use super::scores::QueryScores;
use crate::errors::check_range;
use crate::ranking::links::LinkMetrics;

/// Smaller gradients of scores are left out.
const NEGLIGIBLE: f32 = 1e-5;

/// Training of a [`FactRecurrence`].
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrenceConfig {
    /// Passes over the training facts.
    pub epochs: usize,
    /// Learning rate of Adagrad. It falls linearly to a tenth over all epochs.
    pub lr: f64,
    /// Weight of the squares of the weights that are not shared.
    pub decay: f64,
}

impl Default for RecurrenceConfig {
    fn default() -> Self {
        Self { epochs: 3, lr: 0.05, decay: 1e-3 }
    }
}

/// An epoch of [`fit_recurrence`].
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrenceEpoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean cross entropy of a fact and direction.
    pub loss: f64,
    /// Seconds of training and validation.
    pub seconds: f64,
    /// Metrics of the validation facts, if there are any.
    pub valid: Option<LinkMetrics>,
}

/// Sums of squared gradients of Adagrad, and the options of a step.
struct Adagrad {
    pairs: Vec<f32>,
    popular: Vec<f32>,
    shared: [f32; KINDS * FEATURES],
    lr: f32,
    decay: f32,
}

/// A query (head, relation) with all its answers at a time.
type Query = (u32, u32, Vec<u32>);

impl Adagrad {
    fn new(model: &FactRecurrence, decay: f32) -> Self {
        Self {
            pairs: vec![0.0; model.pairs.len()],
            popular: vec![0.0; model.popular.len()],
            shared: [0.0; KINDS * FEATURES],
            lr: 0.0,
            decay,
        }
    }
}

/// Moves the weights of the features of one earlier fact, whose score has the gradient `grad`.
fn descend(
    weights: &mut [f32],
    squares: &mut [f32],
    features: &[f32; FEATURES],
    grad: f32,
    [lr, decay]: [f32; 2],
) {
    for ((weight, squares), x) in weights.iter_mut().zip(squares).zip(features) {
        let grad = grad * x + decay * *weight;
        *squares += grad * grad;
        if *squares > 0.0 {
            *weight -= lr * grad / squares.sqrt();
        }
    }
}

/// A step of Adagrad for one query. Returns the sum of the cross entropies of its answers.
fn step(
    model: &mut FactRecurrence,
    past: &Past,
    (head, relation, answers): &Query,
    time: u32,
    (scores, optimizer): (&mut QueryScores, &mut Adagrad),
) -> f64 {
    model.score(past, (*head, *relation), time, scores);
    let untouched = (model.num_entities - scores.touched.len()) as f32;
    let most = scores.touched.iter().map(|&v| scores.values[v as usize]).fold(0.0, f32::max);
    let exps = scores.touched.iter().map(|&v| (scores.values[v as usize] - most).exp());
    let total = exps.sum::<f32>() + untouched * (-most).exp();
    let log_total = most + total.ln();
    let of = |&v: &u32| f64::from(log_total - scores.values[v as usize]);
    let loss = answers.iter().map(of).sum();
    // Scores become their gradients.
    for &v in &scores.touched {
        let score = &mut scores.values[v as usize];
        *score = (*score - log_total).exp() * answers.len() as f32;
    }
    answers.iter().for_each(|&v| scores.values[v as usize] -= 1.0);
    let Adagrad { lr, decay, .. } = *optimizer;
    let (of_entity, of_relation) =
        (&past.of_entity[*head as usize], &past.of_relation[*relation as usize]);
    let mut features = scores.features.iter();
    for (seen, features) in of_entity.iter().zip(features.by_ref()) {
        let grad = scores.values[seen.other as usize];
        if grad.abs() < NEGLIGIBLE {
            continue;
        }
        let (at, kind) = model.places(*relation, seen.relation);
        let (own, shared) = (at..at + FEATURES, kind..kind + FEATURES);
        let (weights, squares) = (&mut model.pairs[own.clone()], &mut optimizer.pairs[own]);
        descend(weights, squares, features, grad, [lr, decay]);
        let (weights, squares) = (&mut model.shared[shared.clone()], &mut optimizer.shared[shared]);
        descend(weights, squares, features, grad, [lr, 0.0]);
    }
    let (at, kind) = (*relation as usize * FEATURES, ANY_ENTITY * FEATURES);
    let (own, shared) = (at..at + FEATURES, kind..kind + FEATURES);
    let (weights, squares) = (&mut model.popular[own.clone()], &mut optimizer.popular[own]);
    let (of_all, of_all_squares) =
        (&mut model.shared[shared.clone()], &mut optimizer.shared[shared]);
    for (seen, features) in of_relation.iter().zip(features) {
        let grad = scores.values[seen.other as usize];
        if grad.abs() >= NEGLIGIBLE {
            descend(weights, squares, features, grad, [lr, decay]);
            descend(of_all, of_all_squares, features, grad, [lr, 0.0]);
        }
    }
    // An answer that no earlier fact leads to is not in the list that `clear` empties.
    answers.iter().for_each(|&v| scores.values[v as usize] = 0.0);
    loss
}

/// Trains a [`FactRecurrence`] on the training facts in the order of time, and returns the model of the epoch with the best
/// mean reciprocal rank on the validation facts, or of the last epoch without validation facts. Nothing is drawn at random.
///
/// # Errors
/// An option out of range, no training facts, facts that are not sorted by time, parts that overlap in time, an entity or
/// relation that the graph does not have, or a loss that is not finite.
///
/// ```
/// use burn_gnn_data::{TemporalKnowledgeGraph, TimedTriple};
/// use burn_gnn_links::{RecurrenceConfig, fit_recurrence};
/// // Entity 0 meets 1 and 2 in turns.
/// let fact = |time| TimedTriple { time, head: 0, relation: 0, tail: 1 + time % 2 };
/// let kg = TemporalKnowledgeGraph {
///     entities: (0..5).map(|i| i.to_string()).collect(),
///     relations: vec!["meets".into()],
///     train: (0..40).map(fact).collect(),
///     test: (40..50).map(fact).collect(),
///     ..TemporalKnowledgeGraph::default()
/// };
/// let config = RecurrenceConfig { epochs: 20, ..RecurrenceConfig::default() };
/// let model = fit_recurrence(&kg, &config, |_| {})?;
/// let metrics = model.ranks(&kg.train, &kg.test)?.metrics();
/// assert_eq!(metrics.mrr, 1.0);
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
pub fn fit_recurrence(
    kg: &TemporalKnowledgeGraph,
    config: &RecurrenceConfig,
    mut on_epoch: impl FnMut(&RecurrenceEpoch),
) -> Result<FactRecurrence, ModelError> {
    let Some(last) = kg.train.last() else { return Err(ModelError::NothingToTrain) };
    check_range("epochs", "1..", config.epochs, config.epochs > 0)?;
    let (lr, decay) = (config.lr, config.decay);
    check_range("lr", "numbers above 0", lr, lr.is_finite() && lr > 0.0)?;
    check_range("decay", "numbers from 0", decay, decay.is_finite() && decay >= 0.0)?;
    let (entities, relations) = (kg.entities.len(), kg.relations.len());
    let mut model = FactRecurrence::new(entities, relations, last.time);
    model.check("train", &kg.train, 0)?;
    model.check("valid", &kg.valid, last.time + 1)?;
    let mut optimizer = Adagrad::new(&model, decay as f32);
    let mut scores = QueryScores::new(entities);
    let mut best: Option<(f64, FactRecurrence)> = None;
    for epoch in 0..config.epochs {
        let start = Instant::now();
        optimizer.lr = (lr * (1.0 - 0.9 * epoch as f64 / config.epochs as f64)) as f32;
        let mut past = Past::new(entities, relations, &model.decays);
        let mut sum = 0.0;
        for (batch, facts) in kg.train.chunk_by(|a, b| a.time == b.time).enumerate() {
            for query in queries(facts, relations as u32) {
                sum +=
                    step(&mut model, &past, &query, facts[0].time, (&mut scores, &mut optimizer));
            }
            if !sum.is_finite() {
                return Err(ModelError::Diverged { epoch, pass: "training", batch, loss: sum, lr });
            }
            facts.iter().for_each(|fact| past.add(fact));
        }
        let valid = match kg.valid.is_empty() {
            true => None,
            false => Some(model.ranks(&kg.train, &kg.valid)?.metrics()),
        };
        on_epoch(&RecurrenceEpoch {
            epoch: epoch + 1,
            loss: sum / (2 * kg.train.len()) as f64,
            seconds: start.elapsed().as_secs_f64(),
            valid,
        });
        let mrr = valid.map_or(epoch as f64, |m| m.mrr);
        if best.as_ref().is_none_or(|(other, _)| mrr > *other) {
            best = Some((mrr, model.clone()));
        }
    }
    Ok(best.map_or(model, |(_, model)| model))
}

/// Queries of the facts of a time step in both directions, ascending.
fn queries(step: &[TimedTriple], relations: u32) -> Vec<Query> {
    let both =
        |f: &TimedTriple| [(f.head, f.relation, f.tail), (f.tail, f.relation + relations, f.head)];
    let mut all: Vec<(u32, u32, u32)> = step.iter().flat_map(both).collect();
    all.sort_unstable();
    let groups = all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
    groups.map(|g| (g[0].0, g[0].1, g.iter().map(|q| q.2).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(time: u32, head: u32, relation: u32, tail: u32) -> TimedTriple {
        TimedTriple { time, head, relation, tail }
    }

    /// Pairs of entities that meet again after two steps, and after each meeting part in the next step.
    fn graph() -> TemporalKnowledgeGraph {
        let at = |time: u32| {
            (0..3).map(move |i| match (time + i) % 2 {
                0 => fact(time, i, 0, 3 + (time + i) / 2 % 3),
                _ => fact(time, i, 1, 3 + (time + i - 1) / 2 % 3),
            })
        };
        TemporalKnowledgeGraph {
            entities: (0..8).map(|i| i.to_string()).collect(),
            relations: vec!["meets".into(), "parts from".into()],
            train: (0..40).flat_map(at).collect(),
            valid: (40..46).flat_map(at).collect(),
            test: (46..52).flat_map(at).collect(),
            ..TemporalKnowledgeGraph::default()
        }
    }

    #[test]
    fn rules_between_relations_are_learned() {
        let kg = graph();
        let config = RecurrenceConfig { epochs: 10, ..RecurrenceConfig::default() };
        let model = fit_recurrence(&kg, &config, |_| {}).unwrap();
        let past = [&kg.train[..], &kg.valid].concat();
        let mrr = model.ranks(&past, &kg.test).unwrap().metrics().mrr;
        let simple = FactRecurrence::recent_and_frequent(8, 2, 39);
        let baseline = simple.ranks(&past, &kg.test).unwrap().metrics().mrr;
        assert!(mrr > 0.75 && mrr > baseline + 0.1, "{mrr}, baseline {baseline}");
    }

    /// No fact of a step or of a later one changes the ranks of the step.
    #[test]
    fn later_facts_do_not_change_ranks() {
        let kg = graph();
        let model = fit_recurrence(&kg, &RecurrenceConfig::default(), |_| {}).unwrap();
        let ranks = model.ranks(&kg.train, &kg.valid).unwrap();
        let mut changed = kg.valid.clone();
        changed[9..].iter_mut().for_each(|f| f.tail = (f.tail + 1) % 8);
        let other = model.ranks(&kg.train, &changed).unwrap();
        assert_eq!(ranks.tails[..9], other.tails[..9]);
        assert_eq!(ranks.heads[..9], other.heads[..9]);
        assert_ne!(ranks.tails[9..], other.tails[9..]);
    }

    /// The first gradient of a step equals the difference quotient of its loss.
    #[test]
    fn gradients_equal_difference_quotients() {
        let kg = graph();
        let mut model = FactRecurrence::new(8, 2, 39);
        for (i, w) in model.pairs.iter_mut().enumerate() {
            *w = (i % 7) as f32 * 0.1 - 0.3;
        }
        let mut past = Past::new(8, 2, &model.decays);
        // Entity 1 parts from 3, then meets 4.
        kg.train[..6].iter().for_each(|f| past.add(f));
        let query: Query = (1, 0, vec![3, 4, 7]);
        let optimizer = || Adagrad { lr: 1e-6, ..Adagrad::new(&model, 0.0) };
        let loss = |model: &FactRecurrence| {
            let (mut model, mut scores) = (model.clone(), QueryScores::new(8));
            step(&mut model, &past, &query, 12, (&mut scores, &mut optimizer()))
        };
        // Each weight has one earlier fact, so the sum of its squared gradients is the square of the gradient.
        let (mut stepped, mut state) = (model.clone(), optimizer());
        step(&mut stepped, &past, &query, 12, (&mut QueryScores::new(8), &mut state));
        let mut checked = 0;
        for (at, squares) in state.pairs.iter().enumerate().filter(|(_, s)| **s > 1e-6) {
            let moved = |by: f32| {
                let mut model = model.clone();
                model.pairs[at] += by;
                loss(&model)
            };
            let quotient = (moved(0.01) - moved(-0.01)) / 0.02;
            assert!((quotient.abs() - f64::from(squares.sqrt())).abs() < 1e-2, "{at}: {quotient}");
            checked += 1;
        }
        assert!(checked >= 4, "{checked}");
    }

    #[test]
    fn graphs_without_facts_are_errors() {
        let kg = TemporalKnowledgeGraph::default();
        assert!(fit_recurrence(&kg, &RecurrenceConfig::default(), |_| {}).is_err());
    }
}
