//! Forecasts facts from those that were true before: a log-linear model of recurrence.

use std::collections::HashMap;
use std::time::Instant;

use burn_gnn_data::{TemporalKnowledgeGraph, TimedTriple};
use burn_gnn_models::ModelError;
use rayon::prelude::*;

use super::kge::KgeRanks;
use crate::errors::{check_range, out_of_range};
use crate::ranking::links::LinkMetrics;

/// Features of an earlier fact.
const FEATURES: usize = 6;
/// Kinds of earlier facts with weights that all relations share: of the same relation, of its reciprocal, of another
/// relation, and of the same relation with any entity.
const KINDS: usize = 4;
const ANY_ENTITY: usize = 3;
/// Gaps whose decays are stored.
const TABLE: usize = 1 << 12;
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

/// Scores the tails of `(h, r, ?)` at a time by the facts before it. Heads are tails of reciprocal relations.
///
/// ```text
/// s(h, r, v, t) = Σ (w[r, r'] + w[kind]) · f(h, r', v)   over relations r' of earlier facts (h, r', v)
///               + (u[r] + u) · f(·, r, v)                 if v was a tail of r before
/// f = [1, exp(-g / τ₁), exp(-g / τ₂), exp(-g / τ₃), ln(1 + n) / 2, ln(1 + m)]
/// ```
///
/// `g` is the time since the last such fact, `n` the number of them, and `m` the number with weights `exp(-age / 2 τ₂)`.
/// `kind` says whether `r'` is `r`, its reciprocal or another relation. `τ₁` is two steps, `τ₃` a sixth of the training
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
    num_entities: usize,
    num_relations: usize,
    scales: [f32; 4],
    /// Decays by gap.
    table: Vec<[f32; 4]>,
    /// `[2 R, 2 R, FEATURES]`.
    pairs: Vec<f32>,
    /// `[2 R, FEATURES]`.
    popular: Vec<f32>,
    /// `[KINDS, FEATURES]`.
    shared: [f32; KINDS * FEATURES],
}

/// Facts of one relation with one entity.
struct Seen {
    relation: u32,
    other: u32,
    last: u32,
    count: f32,
    /// Number with decaying weights, at the time of the last.
    recent: f32,
}

/// Facts before a time.
struct Past {
    of_entity: Vec<Vec<Seen>>,
    of_relation: Vec<Vec<Seen>>,
    entity_places: HashMap<(u32, u32, u32), usize>,
    relation_places: HashMap<(u32, u32), usize>,
}

/// Scores of one query.
struct Scratch {
    scores: Vec<f32>,
    is_touched: Vec<bool>,
    touched: Vec<u32>,
    /// Features of the earlier facts, in the order of the score.
    features: Vec<[f32; FEATURES]>,
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

impl Past {
    fn new(entities: usize, relations: usize) -> Self {
        let lists = |n: usize| (0..n).map(|_| Vec::new()).collect();
        Self {
            of_entity: lists(entities),
            of_relation: lists(2 * relations),
            entity_places: HashMap::new(),
            relation_places: HashMap::new(),
        }
    }

    fn add(&mut self, model: &FactRecurrence, fact: &TimedTriple) {
        let reciprocal = fact.relation + model.num_relations as u32;
        for (head, relation, other) in
            [(fact.head, fact.relation, fact.tail), (fact.tail, reciprocal, fact.head)]
        {
            let seen = || Seen { relation, other, last: fact.time, count: 0.0, recent: 0.0 };
            let of_entity = &mut self.of_entity[head as usize];
            let of_relation = &mut self.of_relation[relation as usize];
            let place = self.entity_places.entry((head, relation, other)).or_insert_with(|| {
                of_entity.push(seen());
                of_entity.len() - 1
            });
            of_entity[*place].repeat(model, fact.time);
            let place = self.relation_places.entry((relation, other)).or_insert_with(|| {
                of_relation.push(seen());
                of_relation.len() - 1
            });
            of_relation[*place].repeat(model, fact.time);
        }
    }
}

impl Seen {
    fn repeat(&mut self, model: &FactRecurrence, time: u32) {
        self.recent = self.recent * model.decays(time - self.last)[3] + 1.0;
        self.count += 1.0;
        self.last = time;
    }

    fn features(&self, model: &FactRecurrence, time: u32) -> [f32; FEATURES] {
        let [a, b, c, d] = model.decays(time - self.last);
        [1.0, a, b, c, 0.5 * self.count.ln_1p(), (self.recent * d).ln_1p()]
    }
}

fn dot(weights: &[f32], shared: &[f32], features: &[f32; FEATURES]) -> f32 {
    weights.iter().zip(shared).zip(features).map(|((w, s), x)| (w + s) * x).sum()
}

impl Scratch {
    fn new(entities: usize) -> Self {
        Self {
            scores: vec![0.0; entities],
            is_touched: vec![false; entities],
            touched: vec![],
            features: vec![],
        }
    }

    fn add(&mut self, entity: u32, score: f32) {
        let at = entity as usize;
        self.scores[at] += score;
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(entity);
        }
    }

    fn clear(&mut self) {
        for v in self.touched.drain(..) {
            self.scores[v as usize] = 0.0;
            self.is_touched[v as usize] = false;
        }
        self.features.clear();
    }

    /// Rank of an entity among all; equal scores share their mean rank.
    fn rank(&self, entity: u32) -> f64 {
        let of = self.scores[entity as usize];
        let untouched = self.scores.len() - self.touched.len();
        let (mut above, mut equal) = match of.total_cmp(&0.0) {
            std::cmp::Ordering::Less => (untouched, 0),
            std::cmp::Ordering::Equal => (0, untouched),
            std::cmp::Ordering::Greater => (0, 0),
        };
        for &v in &self.touched {
            let score = self.scores[v as usize];
            above += usize::from(score > of);
            equal += usize::from(score == of);
        }
        above as f64 + (equal as f64 + 1.0) / 2.0
    }
}

impl Adagrad {
    fn step(weight: &mut f32, squares: &mut f32, grad: f32, lr: f32) {
        *squares += grad * grad;
        if *squares > 0.0 {
            *weight -= lr * grad / squares.sqrt();
        }
    }
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

    fn new(num_entities: usize, num_relations: usize, last: u32) -> Self {
        let long = (last as f32 / 6.0).max(4.0);
        let middle = (2.0 * long).sqrt();
        let relations = 2 * num_relations;
        let mut model = Self {
            num_entities,
            num_relations,
            scales: [2.0, middle, long, 2.0 * middle],
            table: vec![],
            pairs: vec![0.0; relations * relations * FEATURES],
            popular: vec![0.0; relations * FEATURES],
            shared: [0.0; KINDS * FEATURES],
        };
        model.table = (0..TABLE as u32).map(|gap| model.decays(gap)).collect();
        model
    }

    fn decays(&self, gap: u32) -> [f32; 4] {
        let stored = self.table.get(gap as usize).copied();
        stored.unwrap_or_else(|| self.scales.map(|scale| (-(gap as f32) / scale).exp()))
    }

    /// Place in `pairs` of a relation of earlier facts, and that of its kind in `shared`.
    fn places(&self, relation: u32, earlier: u32) -> (usize, usize) {
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

    fn score(&self, past: &Past, (head, relation): (u32, u32), time: u32, scratch: &mut Scratch) {
        scratch.clear();
        for seen in &past.of_entity[head as usize] {
            let features = seen.features(self, time);
            let (at, kind) = self.places(relation, seen.relation);
            let score = dot(&self.pairs[at..at + FEATURES], &self.shared[kind..], &features);
            scratch.features.push(features);
            scratch.add(seen.other, score);
        }
        let at = relation as usize * FEATURES;
        for seen in &past.of_relation[relation as usize] {
            let features = seen.features(self, time);
            let shared = &self.shared[ANY_ENTITY * FEATURES..];
            let score = dot(&self.popular[at..at + FEATURES], shared, &features);
            scratch.features.push(features);
            scratch.add(seen.other, score);
        }
    }

    /// A step of Adagrad for one query. Returns the sum of the cross entropies of its answers.
    fn step(
        &mut self,
        past: &Past,
        (head, relation, answers): &Query,
        time: u32,
        (scratch, optimizer): (&mut Scratch, &mut Adagrad),
    ) -> f64 {
        self.score(past, (*head, *relation), time, scratch);
        let untouched = (self.num_entities - scratch.touched.len()) as f32;
        let most = scratch.touched.iter().map(|&v| scratch.scores[v as usize]).fold(0.0, f32::max);
        let exps = scratch.touched.iter().map(|&v| (scratch.scores[v as usize] - most).exp());
        let total = exps.sum::<f32>() + untouched * (-most).exp();
        let log_total = most + total.ln();
        let of = |&v: &u32| f64::from(log_total - scratch.scores[v as usize]);
        let loss = answers.iter().map(of).sum();
        // Scores become their gradients.
        for &v in &scratch.touched {
            let score = &mut scratch.scores[v as usize];
            *score = (*score - log_total).exp() * answers.len() as f32;
        }
        answers.iter().for_each(|&v| scratch.scores[v as usize] -= 1.0);
        let mut features = scratch.features.iter();
        for seen in &past.of_entity[*head as usize] {
            let Some(features) = features.next() else { break };
            let grad = scratch.scores[seen.other as usize];
            if grad.abs() < NEGLIGIBLE {
                continue;
            }
            let (at, kind) = self.places(*relation, seen.relation);
            for (k, x) in features.iter().enumerate() {
                let weight = &mut self.pairs[at + k];
                let own = grad * x + optimizer.decay * *weight;
                Adagrad::step(weight, &mut optimizer.pairs[at + k], own, optimizer.lr);
                let (weight, squares) =
                    (&mut self.shared[kind + k], &mut optimizer.shared[kind + k]);
                Adagrad::step(weight, squares, grad * x, optimizer.lr);
            }
        }
        let (at, kind) = (*relation as usize * FEATURES, ANY_ENTITY * FEATURES);
        for (seen, features) in past.of_relation[*relation as usize].iter().zip(features) {
            let grad = scratch.scores[seen.other as usize];
            if grad.abs() < NEGLIGIBLE {
                continue;
            }
            for (k, x) in features.iter().enumerate() {
                let weight = &mut self.popular[at + k];
                let own = grad * x + optimizer.decay * *weight;
                Adagrad::step(weight, &mut optimizer.popular[at + k], own, optimizer.lr);
                let (weight, squares) =
                    (&mut self.shared[kind + k], &mut optimizer.shared[kind + k]);
                Adagrad::step(weight, squares, grad * x, optimizer.lr);
            }
        }
        // An answer that no earlier fact leads to is not in the list that `clear` empties.
        answers.iter().for_each(|&v| scratch.scores[v as usize] = 0.0);
        loss
    }

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
        let mut before = Past::new(self.num_entities, self.num_relations);
        past.iter().for_each(|fact| before.add(self, fact));
        let mut ranks = KgeRanks::default();
        for step in facts.chunk_by(|a, b| a.time == b.time) {
            let rank = |scratch: &mut Scratch, fact: &TimedTriple| {
                let reciprocal = fact.relation + self.num_relations as u32;
                self.score(&before, (fact.head, fact.relation), fact.time, scratch);
                let tail = scratch.rank(fact.tail);
                self.score(&before, (fact.tail, reciprocal), fact.time, scratch);
                (tail, scratch.rank(fact.head))
            };
            let new = || Scratch::new(self.num_entities);
            let found: Vec<(f64, f64)> =
                step.par_iter().with_min_len(16).map_init(new, rank).collect();
            ranks.tails.extend(found.iter().map(|r| r.0));
            ranks.heads.extend(found.iter().map(|r| r.1));
            step.iter().for_each(|fact| before.add(self, fact));
        }
        Ok(ranks)
    }

    /// Checks that facts are sorted by time from `first` on and in range.
    fn check(&self, arg: &str, facts: &[TimedTriple], first: u32) -> Result<(), ModelError> {
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
    let mut optimizer = Adagrad {
        pairs: vec![0.0; model.pairs.len()],
        popular: vec![0.0; model.popular.len()],
        shared: [0.0; KINDS * FEATURES],
        lr: 0.0,
        decay: decay as f32,
    };
    let mut scratch = Scratch::new(entities);
    let mut best: Option<(f64, FactRecurrence)> = None;
    for epoch in 0..config.epochs {
        let start = Instant::now();
        optimizer.lr = (lr * (1.0 - 0.9 * epoch as f64 / config.epochs as f64)) as f32;
        let mut past = Past::new(entities, relations);
        let mut sum = 0.0;
        for (batch, step) in kg.train.chunk_by(|a, b| a.time == b.time).enumerate() {
            for query in queries(step, relations as u32) {
                sum += model.step(&past, &query, step[0].time, (&mut scratch, &mut optimizer));
            }
            if !sum.is_finite() {
                return Err(ModelError::Diverged { epoch, pass: "training", batch, loss: sum, lr });
            }
            step.iter().for_each(|fact| past.add(&model, fact));
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
        let mut past = Past::new(8, 2);
        // Entity 1 parts from 3, then meets 4.
        kg.train[..6].iter().for_each(|f| past.add(&model, f));
        let query: Query = (1, 0, vec![3, 4, 7]);
        let optimizer = || Adagrad {
            pairs: vec![0.0; model.pairs.len()],
            popular: vec![0.0; model.popular.len()],
            shared: [0.0; KINDS * FEATURES],
            lr: 1e-6,
            decay: 0.0,
        };
        let loss = |model: &FactRecurrence| {
            let (mut model, mut scratch) = (model.clone(), Scratch::new(8));
            model.step(&past, &query, 12, (&mut scratch, &mut optimizer()))
        };
        // Each weight has one earlier fact, so the sum of its squared gradients is the square of the gradient.
        let (mut stepped, mut state) = (model.clone(), optimizer());
        stepped.step(&past, &query, 12, (&mut Scratch::new(8), &mut state));
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
        let kg = TemporalKnowledgeGraph::default();
        assert!(fit_recurrence(&kg, &RecurrenceConfig::default(), |_| {}).is_err());
    }
}
