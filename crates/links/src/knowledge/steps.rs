//! Steps of training: gradients of a batch, applied to entities and decoder.

use std::ops::Range;
use std::sync::Arc;

use burn::optim::{AdaGradConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Gradients, IndexingUpdateOp, Tensor, TensorData};
use burn_gnn_models::{FusedAdamConfig, GradientSync, ModelError, id_tensor, select_rows};
use burn_gnn_ops::{Stream, dropout};

use super::all_candidates::{Potential, all_candidates};
use super::config::{KgeConfig, KgeOptimizer, KgeTraining, KvsAllObjective};
use super::entity_table::EntityTable;
use super::queries::Queries;
use super::table_optimizer::{ADAGRAD_EPSILON, TableOptimizer};
use super::type_constraints::TypeConstraints;
use crate::decoders::decoder::{Decoder, Side};
use crate::gradients::{share, sum_gradients};
use crate::losses::link_loss::LinkLoss;
use crate::ranking::true_tails::TrueTails;

/// Model and optimizers in training. The table of entities is not tracked, so that its steps are in place.
pub(super) struct Steps<'a, D: Decoder> {
    config: &'a KgeConfig,
    pub(super) entities: Tensor<2>,
    pub(super) decoder: D,
    of_entities: Option<TableOptimizer>,
    of_decoder: ModuleOptimizer,
    num_entities: usize,
    num_relations: usize,
    pub(super) queries: Queries,
    /// Answers in train, if negatives are filtered.
    known: Option<TrueTails>,
    types: Option<TypeConstraints>,
    device: Device,
}

/// Rows of a batch: tails first, then heads of models without reciprocal relations.
struct Batch {
    /// Examples.
    examples: Vec<usize>,
    given: Vec<u32>,
    /// Relations of the decoder.
    relations: Vec<u32>,
    /// Number of rows whose candidates are tails; candidates of the other rows are heads.
    tails: usize,
    /// Numbers of the rows in the batch of all ranks, if these are a part of it.
    part: Option<Range<usize>>,
    /// Number of examples of all ranks.
    whole: usize,
}

impl Batch {
    /// The rows that a rank computes.
    fn part(&self, rows: Range<usize>) -> Self {
        Self {
            examples: self.examples[rows.clone()].to_vec(),
            given: self.given[rows.clone()].to_vec(),
            relations: self.relations[rows.clone()].to_vec(),
            tails: self.tails.clamp(rows.start, rows.end) - rows.start,
            part: Some(rows),
            whole: self.whole,
        }
    }
}

/// Entities of a step against negatives.
struct Drawn {
    /// Answer of each example.
    answers: Vec<u32>,
    /// Negatives of all examples.
    negatives: Vec<u32>,
    /// All entities of the step, ascending.
    ids: Vec<u32>,
}

impl<'a, D: Decoder> Steps<'a, D> {
    /// `entities` without gradient tracking, `decoder` with. If ranks own the embeddings, `entities` has no row.
    pub(super) fn new(
        config: &'a KgeConfig,
        entities: Tensor<2>,
        decoder: D,
        [num_entities, num_relations]: [usize; 2],
        train: &[burn_gnn_data::Triple],
    ) -> Self {
        let of_decoder = match config.optimizer {
            KgeOptimizer::Adagrad => AdaGradConfig::new().with_epsilon(ADAGRAD_EPSILON).init(),
            KgeOptimizer::Adam => FusedAdamConfig::new().with_epsilon(1e-8).init(),
        };
        let queries = match config.training {
            KgeTraining::KvsAll { .. } => Queries::grouped(train, num_relations),
            _ => Queries::of_triples(train, num_relations),
        };
        let (filtered, constrained) = match config.training {
            KgeTraining::Negatives { filtered, type_constrained, .. } => {
                (filtered, type_constrained)
            }
            _ => (false, false),
        };
        Self {
            config,
            of_entities: Some(TableOptimizer::new(config.optimizer, &entities)),
            device: entities.device(),
            entities,
            num_entities,
            decoder,
            of_decoder,
            num_relations,
            known: filtered
                .then(|| TrueTails::new(super::queries::both_ways(train, num_relations))),
            types: constrained.then(|| TypeConstraints::new(train, num_relations)),
            queries,
        }
    }

    /// Takes one step, and returns the sum of the losses of the examples, without regularisation.
    pub(super) fn step(
        &mut self,
        examples: &[usize],
        (step, lr): (u64, f64),
    ) -> Result<f64, ModelError> {
        let batch = self.batch(examples);
        match self.config.training {
            KgeTraining::OneVsAll => Ok(self.step_all(&batch, (true, 0.0), (step, lr))),
            KgeTraining::KvsAll { objective, answer_power } => {
                let is_softmax = objective == KvsAllObjective::Softmax;
                Ok(self.step_all(&batch, (is_softmax, answer_power), (step, lr)))
            }
            KgeTraining::Negatives { count, loss, .. } => {
                Ok(self.step_negatives(&batch, (count, loss), (step, lr)))
            }
        }
    }

    fn batch(&self, examples: &[usize]) -> Batch {
        let count = self.num_relations as u32;
        let is_tail = |i: &usize| self.config.reciprocal || self.queries.relations[*i] < count;
        let (mut all, heads): (Vec<usize>, Vec<usize>) = examples.iter().partition(|i| is_tail(i));
        let tails = all.len();
        all.extend(heads);
        let relation = |(at, &i): (usize, &usize)| {
            self.queries.relations[i] - if at < tails { 0 } else { count }
        };
        Batch {
            given: all.iter().map(|&i| self.queries.given[i]).collect(),
            relations: all.iter().enumerate().map(relation).collect(),
            tails,
            part: None,
            whole: all.len(),
            examples: all,
        }
    }

    fn stream(&self, purpose: &str, step: u64) -> Stream {
        Stream::new(self.config.seed, purpose, step)
    }

    /// Queries of a batch whose given embeddings are `given`.
    fn query(&self, batch: &Batch, given: Tensor<2>, step: u64) -> Tensor<2> {
        let (n, m) = (batch.examples.len(), batch.tails);
        let part = |rows: Range<usize>, side| {
            let relations = id_tensor(&batch.relations[rows.clone()], &self.device);
            self.decoder.query(given.clone().slice_dim(0, rows), Some(relations), side)
        };
        let queries = match (m == n, m == 0) {
            (true, _) => part(0..n, Side::Tail),
            (_, true) => part(0..n, Side::Head),
            _ => Tensor::cat(vec![part(0..m, Side::Tail), part(m..n, Side::Head)], 0),
        };
        let rows = batch.part.clone().map(|rows| rows.map(|row| row as u64).collect());
        dropout(queries, self.config.query_dropout, self.stream("query dropout", step), rows)
    }

    /// Weighted sum of the powers of the embeddings of relations and of entities, which have a weight per row; `None` without
    /// regularisation.
    fn regularization(
        &self,
        batch: &Batch,
        of_examples: &[f64],
        entities: &[(&Tensor<2>, &[f64])],
    ) -> Option<Tensor<1>> {
        let (config, complex) = (self.config, self.decoder.is_complex());
        let powers = |x: Tensor<2>, weights: &[f64], weight: f64| {
            let squares = x.square();
            let squares = if complex {
                let [_, d] = squares.dims();
                squares.clone().slice_dim(1, 0..d / 2) + squares.slice_dim(1, d / 2..d)
            } else {
                squares
            };
            let rows = match config.regularization_power {
                2 => squares.sum_dim(1),
                _ => (squares.clone() * (squares + 1e-20).sqrt()).sum_dim(1),
            };
            let weights = weights.iter().map(|w| w * weight).collect();
            (rows.squeeze_dim::<1>(1) * self.vector(weights).autodiff()).sum()
        };
        let mut sum = None;
        if config.entity_regularization > 0.0 {
            for (x, weights) in entities {
                let term = powers((*x).clone(), weights, config.entity_regularization);
                sum = Some(sum.map_or(term.clone(), |sum: Tensor<1>| sum + term));
            }
        }
        if config.relation_regularization > 0.0
            && let Some(rows) = self.decoder.relation_embeddings()
        {
            let rows = rows.select(0, id_tensor(&batch.relations, &self.device));
            let term = powers(rows, of_examples, config.relation_regularization);
            sum = Some(sum.map_or(term.clone(), |sum| sum + term));
        }
        sum
    }

    fn vector(&self, values: Vec<f64>) -> Tensor<1> {
        let n = values.len();
        let on = (&self.device, self.entities.dtype());
        Tensor::from_data(TensorData::new(values, [n]), on)
    }

    /// A step against all entities.
    fn step_all(
        &mut self,
        batch: &Batch,
        (is_softmax, answer_power): (bool, f64),
        (step, lr): (u64, f64),
    ) -> f64 {
        let (config, n) = (self.config, batch.examples.len());
        let masks = self.stream("entity dropout", step);
        let table = dropout(self.entities.clone(), config.entity_dropout, masks, None);
        let given = leaf(select_rows(table.clone(), &batch.given));
        let queries = self.query(batch, given.clone(), step);

        // Weights of examples and of their answers, and the coefficients of the scores that are not in the potential.
        let count = |i: &usize| self.queries.answers(*i).len() as f64;
        let powers: Vec<f64> = batch.examples.iter().map(|i| count(i).powf(answer_power)).collect();
        let total: f64 = powers.iter().sum();
        let weights: Vec<f64> = powers.iter().map(|w| w / total).collect();
        let (smooth, mut rows, mut answers) = (config.label_smoothing, vec![], vec![]);
        let (mut shares, mut coefficients, mut of_value) = (vec![], vec![], vec![]);
        let mut first = Vec::with_capacity(n);
        for (row, &i) in batch.examples.iter().enumerate() {
            let all = self.queries.answers(i);
            first.push(all[0]);
            let each = (1.0 - smooth) / if is_softmax { all.len() as f64 } else { 1.0 };
            for (at, &e) in all.iter().enumerate() {
                rows.push(row as u32);
                answers.push(e);
                shares.push(weights[row] / all.len() as f64);
                let coefficient = each - f64::from(u8::from(is_softmax && at == 0));
                coefficients.push(weights[row] * coefficient);
                of_value.push(coefficient);
            }
        }
        let uniform = smooth / self.entities.dims()[0] as f64;
        let potential = if is_softmax { Potential::Softmax(&first) } else { Potential::Bce };
        let comparison = self.decoder.comparison();
        let all = all_candidates(
            &queries.clone().inner(),
            &table,
            comparison,
            potential,
            uniform,
            &weights,
        );
        let (mut value, mut loss) = (all.loss, (queries.clone() * all.d_queries.autodiff()).sum());
        let linear = of_value.iter().any(|&c| c != 0.0);
        let targets = (linear || config.entity_regularization > 0.0)
            .then(|| leaf(select_rows(table.clone(), &answers)));
        if let (true, Some(targets)) = (linear, &targets) {
            let of_rows = select_rows(queries, &rows);
            let scores = comparison.pairs(of_rows, targets.clone());
            let sum = (scores.clone().inner() * self.vector(of_value)).sum();
            value -= sum.into_scalar::<f64>();
            loss = loss - (scores * self.vector(coefficients).autodiff()).sum();
        }
        let mut embeddings = vec![(&given, &weights[..])];
        embeddings.extend(targets.as_ref().map(|targets| (targets, &shares[..])));
        if let Some(penalty) = self.regularization(batch, &weights, &embeddings) {
            loss = loss + penalty;
        }
        let grads = loss.backward();
        let mut d_entities = all.d_entities;
        for (x, ids) in [(Some(&given), &batch.given), (targets.as_ref(), &answers)] {
            if let Some(grad) = x.and_then(|x| x.grad(&grads)) {
                let ids = id_tensor(ids, &self.device);
                d_entities = d_entities.select_assign(0, ids, grad, IndexingUpdateOp::Add);
            }
        }
        drop((table, given, targets));
        // The mask is diagonal: it is its own gradient.
        let d_entities = dropout(d_entities, config.entity_dropout, masks, None);
        self.update(d_entities, None, grads, lr);
        value
    }

    /// A step against entities that are drawn for the batch.
    fn step_negatives(
        &mut self,
        batch: &Batch,
        (count, loss): (usize, LinkLoss),
        (step, lr): (u64, f64),
    ) -> f64 {
        let drawn = self.draw(batch, count, step);
        let rows = leaf(select_rows(self.entities.clone(), &drawn.ids));
        let (value, total) = self.loss_of_negatives(batch, &drawn, &rows, loss, step);
        let grads = total.backward();
        let grad = rows.grad(&grads).unwrap_or_else(|| rows.clone().inner().zeros_like());
        self.update(grad, Some(drawn.ids.into()), grads, lr);
        value
    }

    /// [`step`](Self::step) by negatives, where this rank computes a part of the examples, and `table` has the embeddings
    /// of entities. The result is that of all ranks. Collective.
    pub(super) fn step_on_ranks<S: GradientSync>(
        &mut self,
        examples: &[usize],
        table: &mut dyn EntityTable,
        sync: &S,
        (count, loss): (usize, LinkLoss),
        (step, lr): (u64, f64),
    ) -> Result<f64, ModelError> {
        let whole = self.batch(examples);
        let batch = whole.part(share(whole.examples.len(), sync));
        let (mut ids, mut value, mut of_rows) = (vec![], [0.0], vec![]);
        let mut of_decoder = GradientsParams::new();
        if batch.examples.is_empty() {
            table.rows(&ids)?;
        } else {
            let drawn = self.draw(&batch, count, step);
            let values = TensorData::new(table.rows(&drawn.ids)?, [drawn.ids.len(), self.config.d]);
            let rows = leaf(Tensor::from_data(values, (&self.device, self.entities.dtype())));
            let (sum, total) = self.loss_of_negatives(&batch, &drawn, &rows, loss, step);
            let grads = total.backward();
            let grad = rows.grad(&grads).unwrap_or_else(|| rows.clone().inner().zeros_like());
            of_rows = grad.into_data().iter::<f32>().collect();
            of_decoder = GradientsParams::from_grads(grads, &self.decoder);
            (value, ids) = ([sum], drawn.ids);
        }
        table.step(&ids, &of_rows, lr)?;
        let of_decoder = sum_gradients(sync, &self.decoder, of_decoder);
        self.decoder = self.of_decoder.step(lr, self.decoder.clone(), of_decoder);
        sync.sum(&mut value);
        Ok(value[0])
    }

    /// Negatives, which are those of all ranks, and the entities of the batch.
    fn draw(&self, batch: &Batch, count: usize, step: u64) -> Drawn {
        let entities = self.num_entities;
        let draws = self.stream("negatives", step);
        let negatives: Vec<u32> = (0..count as u64)
            .map(|i| ((draws.uniform(i, 0) * entities as f64) as u32).min(entities as u32 - 1))
            .collect();
        let answers: Vec<u32> =
            batch.examples.iter().map(|&i| self.queries.answers(i)[0]).collect();
        let mut ids: Vec<u32> = [&batch.given[..], &answers, &negatives].concat();
        ids.sort_unstable();
        ids.dedup();
        Drawn { answers, negatives, ids }
    }

    /// Sum of the losses of the examples, and their part of the mean over the batch of all ranks with its regularisation.
    /// `rows` are the embeddings of `drawn.ids`.
    fn loss_of_negatives(
        &self,
        batch: &Batch,
        drawn: &Drawn,
        rows: &Tensor<2>,
        loss: LinkLoss,
        step: u64,
    ) -> (f64, Tensor<1>) {
        let (config, n) = (self.config, batch.examples.len());
        let (ids, count) = (&drawn.ids, drawn.negatives.len());
        let local = |of: &[u32]| -> Vec<u32> {
            of.iter().map(|id| ids.partition_point(|x| x < id) as u32).collect()
        };
        let keys: Arc<[u64]> = ids.iter().map(|&id| u64::from(id)).collect();
        let masks = self.stream("entity dropout", step);
        let table = dropout(rows.clone(), config.entity_dropout, masks, Some(keys));
        let given = select_rows(table.clone(), local(&batch.given));
        let targets = select_rows(table.clone(), local(&drawn.answers));
        let candidates = select_rows(table, local(&drawn.negatives));
        let queries = self.query(batch, given.clone(), step);
        let m = batch.tails;
        let comparison = self.decoder.comparison();
        let positive = comparison.pairs(queries.clone(), targets.clone());
        let part = |rows: Range<usize>, side| {
            let queries = queries.clone().slice_dim(0, rows);
            self.decoder.score_all(queries, candidates.clone(), side)
        };
        let mut negative = match (m == n, m == 0) {
            (true, _) => part(0..n, Side::Tail),
            (_, true) => part(0..n, Side::Head),
            _ => Tensor::cat(vec![part(0..m, Side::Tail), part(m..n, Side::Head)], 0),
        };
        if self.known.is_some() || self.types.is_some() {
            let mask = self.left_out(batch, &drawn.negatives);
            let data = TensorData::new(mask, [n, count]);
            let mask = Tensor::<2>::from_data(data, (&self.device, rows.dtype()));
            negative = negative + mask.autodiff();
        }
        if loss == LinkLoss::SampledSoftmax {
            negative = negative - (count as f64 / self.num_entities as f64).ln();
        }
        let mean = loss.forward(positive, negative);
        let value = mean.clone().inner().into_scalar::<f64>() * n as f64;
        let mean = if n < batch.whole { mean * (n as f64 / batch.whole as f64) } else { mean };
        let each = vec![1.0 / batch.whole as f64; n];
        let embeddings = [(&given, &each[..]), (&targets, &each[..])];
        let total = match self.regularization(batch, &each, &embeddings) {
            Some(penalty) => mean + penalty,
            None => mean,
        };
        (value, total)
    }

    /// Mask that is added to the scores of drawn entities, `[examples, drawn]`: 0, or -∞ for entities that are left out.
    fn left_out(&self, batch: &Batch, drawn: &[u32]) -> Vec<f32> {
        let mut mask = vec![0.0; batch.examples.len() * drawn.len()];
        for (row, &i) in mask.chunks_mut(drawn.len()).zip(&batch.examples) {
            let (given, relation) = (self.queries.given[i], self.queries.relations[i]);
            let known = self.known.as_ref().map_or(&[][..], |k| k.of(given, relation));
            let types = self.types.as_ref().map(|types| types.of(relation));
            for (x, e) in row.iter_mut().zip(drawn) {
                let plausible = types.is_none_or(|types| types.binary_search(e).is_ok());
                if !plausible || known.binary_search(e).is_ok() {
                    *x = f32::NEG_INFINITY;
                }
            }
        }
        mask
    }

    fn update(&mut self, grad: Tensor<2>, ids: Option<Arc<[u32]>>, grads: Gradients, lr: f64) {
        let grads = GradientsParams::from_grads(grads, &self.decoder);
        self.decoder = self.of_decoder.step(lr, self.decoder.clone(), grads);
        let none = Tensor::empty([0, 0], &self.device);
        let table = std::mem::replace(&mut self.entities, none);
        if let Some(optimizer) = self.of_entities.take() {
            let (optimizer, table) = optimizer.step(table, grad, ids.as_ref(), lr);
            (self.of_entities, self.entities) = (Some(optimizer), table);
        }
    }
}

/// A tensor with gradient.
fn leaf(x: Tensor<2>) -> Tensor<2> {
    x.autodiff().require_grad()
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::knowledge::config::KgeKind;
    use crate::knowledge::kge::Kge;
    use crate::knowledge::kge_decoder::KgeDecoder;
    use burn::module::Module;
    use burn_gnn_data::Triple;

    const TRAIN: [Triple; 4] = [
        Triple { head: 0, relation: 0, tail: 1 },
        Triple { head: 0, relation: 0, tail: 2 },
        Triple { head: 3, relation: 1, tail: 1 },
        Triple { head: 4, relation: 1, tail: 5 },
    ];

    fn steps(config: &KgeConfig) -> Steps<'_, KgeDecoder> {
        let model = Kge::try_new(config, 6, 2, &Device::flex()).unwrap();
        let entities = model.entities.val().detach();
        Steps::new(config, entities, model.decoder.train(), [6, 2], &TRAIN)
    }

    /// `Σ weight |x|^p`, where complex numbers count by their moduli.
    #[test]
    fn regularization_equals_its_definition() {
        for (kind, power) in [
            (KgeKind::ComplEx, 3),
            (KgeKind::ComplEx, 2),
            (KgeKind::DistMult, 3),
            (KgeKind::DistMult, 2),
        ] {
            let config = KgeConfig {
                d: 4,
                regularization_power: power,
                entity_regularization: 0.3,
                relation_regularization: 0.7,
                ..KgeConfig::new(kind)
            };
            let steps = steps(&config);
            let batch = steps.batch(&[0, 2]);
            let given = leaf(select_rows(steps.entities.clone(), &batch.given));
            let weights = [0.25, 0.75];
            let embeddings = [(&given, &weights[..])];
            let found = steps.regularization(&batch, &weights, &embeddings).unwrap();
            let norm = |row: &[f32]| -> f64 {
                let wide = |i: usize| f64::from(row[i]);
                let moduli: Vec<f64> = match kind {
                    KgeKind::ComplEx => (0..2).map(|i| wide(i).hypot(wide(i + 2))).collect(),
                    _ => (0..4).map(|i| wide(i).abs()).collect(),
                };
                moduli.iter().map(|m| m.powi(power as i32)).sum()
            };
            let of = |rows: Tensor<2>| -> f64 {
                let values: Vec<f32> = rows.into_data().iter::<f32>().collect();
                values.chunks(4).zip(weights).map(|(row, weight)| weight * norm(row)).sum()
            };
            let relations = steps.decoder.relation_embeddings().unwrap().inner();
            let relations = relations.select(0, id_tensor(&batch.relations, &steps.device));
            let expected = 0.3 * of(given.clone().inner()) + 0.7 * of(relations);
            let value = found.inner().into_scalar::<f64>();
            assert!(
                expected > 0.01 && (value - expected).abs() < 1e-5 * expected,
                "{kind:?} {power}"
            );
        }
    }

    /// Negatives that are answers in train, or that never occur at this end of the relation, do not compete.
    #[test]
    fn known_and_implausible_negatives_are_left_out() {
        let config = |filtered, type_constrained| KgeConfig {
            d: 4,
            training: KgeTraining::Negatives {
                count: 3,
                loss: LinkLoss::Bce,
                filtered,
                type_constrained,
            },
            ..KgeConfig::new(KgeKind::ComplEx)
        };
        // Tails of relation 0: 1 and 2, both known of head 0; of relation 1: 1 and 5. Heads of relation 1: 3 and 4.
        let all: Vec<u32> = (0..6).collect();
        for (filtered, constrained, expected) in [
            (true, false, [[1, 1, 0], [1, 0, 0], [0, 0, 1]]),
            (false, true, [[0, 0, 1], [0, 1, 0], [1, 1, 0]]),
            (true, true, [[1, 1, 1], [1, 1, 0], [1, 1, 1]]),
        ] {
            let config = config(filtered, constrained);
            let steps = steps(&config);
            // (0, 0, ?), (3, 1, ?) and (?, 1, 5), whose number is that of triple 3 among the reciprocal ones.
            let batch = steps.batch(&[0, 2, 7]);
            let mask = steps.left_out(&batch, &all);
            let out = |row: usize, e: usize| u8::from(mask[6 * row + e] == f32::NEG_INFINITY);
            let found = [
                [out(0, 1), out(0, 2), out(0, 3)],
                [out(1, 1), out(1, 2), out(1, 5)],
                [out(2, 1), out(2, 5), out(2, 4)],
            ];
            assert_eq!(found, expected, "filtered {filtered}, constrained {constrained}");
        }
    }
}
