//! Steps of training: gradients of a batch, applied to entities and decoder.

use std::sync::Arc;

use burn::optim::{AdaGradConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Gradients, IndexingUpdateOp, Tensor, TensorData};
use burn_gnn_models::{FusedAdamConfig, ModelError, id_tensor, select_rows};
use burn_gnn_ops::{Stream, dropout};

use super::all_candidates::{Potential, all_candidates};
use super::config::{KgeConfig, KgeOptimizer, KgeTraining, KvsAllObjective};
use super::queries::Queries;
use super::table_optimizer::{ADAGRAD_EPSILON, TableOptimizer};
use super::type_constraints::TypeConstraints;
use crate::decoders::decoder::{Decoder, Side};
use crate::losses::link_loss::LinkLoss;
use crate::ranking::true_tails::TrueTails;

/// Model and optimizers in training. The table of entities is not tracked, so that its steps are in place.
pub(super) struct Steps<'a, D: Decoder> {
    config: &'a KgeConfig,
    pub(super) entities: Tensor<2>,
    pub(super) decoder: D,
    of_entities: Option<TableOptimizer>,
    of_decoder: ModuleOptimizer,
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
}

impl<'a, D: Decoder> Steps<'a, D> {
    /// `entities` without gradient tracking, `decoder` with.
    pub(super) fn new(
        config: &'a KgeConfig,
        entities: Tensor<2>,
        decoder: D,
        num_relations: usize,
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
            examples: all,
        }
    }

    fn stream(&self, purpose: &str, step: u64) -> Stream {
        Stream::new(self.config.seed, purpose, step)
    }

    /// Queries of a batch whose given embeddings are `given`.
    fn query(&self, batch: &Batch, given: Tensor<2>, step: u64) -> Tensor<2> {
        let (n, m) = (batch.examples.len(), batch.tails);
        let part = |rows: std::ops::Range<usize>, side| {
            let relations = id_tensor(&batch.relations[rows.clone()], &self.device);
            self.decoder.query(given.clone().slice_dim(0, rows), Some(relations), side)
        };
        let queries = match (m == n, m == 0) {
            (true, _) => part(0..n, Side::Tail),
            (_, true) => part(0..n, Side::Head),
            _ => Tensor::cat(vec![part(0..m, Side::Tail), part(m..n, Side::Head)], 0),
        };
        dropout(queries, self.config.query_dropout, self.stream("query dropout", step), None)
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
        let (config, n) = (self.config, batch.examples.len());
        let entities = self.entities.dims()[0];
        let draws = self.stream("negatives", step);
        let drawn: Vec<u32> = (0..count as u64)
            .map(|i| ((draws.uniform(i, 0) * entities as f64) as u32).min(entities as u32 - 1))
            .collect();
        let answers: Vec<u32> =
            batch.examples.iter().map(|&i| self.queries.answers(i)[0]).collect();
        let mut ids: Vec<u32> = [&batch.given[..], &answers, &drawn].concat();
        ids.sort_unstable();
        ids.dedup();
        let local = |of: &[u32]| -> Vec<u32> {
            of.iter().map(|id| ids.partition_point(|x| x < id) as u32).collect()
        };
        let rows = leaf(select_rows(self.entities.clone(), &ids));
        let keys: Arc<[u64]> = ids.iter().map(|&id| u64::from(id)).collect();
        let masks = self.stream("entity dropout", step);
        let table = dropout(rows.clone(), config.entity_dropout, masks, Some(keys));
        let given = select_rows(table.clone(), local(&batch.given));
        let targets = select_rows(table.clone(), local(&answers));
        let candidates = select_rows(table, local(&drawn));
        let queries = self.query(batch, given.clone(), step);
        let m = batch.tails;
        let comparison = self.decoder.comparison();
        let positive = comparison.pairs(queries.clone(), targets.clone());
        let part = |rows: std::ops::Range<usize>, side| {
            let queries = queries.clone().slice_dim(0, rows);
            self.decoder.score_all(queries, candidates.clone(), side)
        };
        let mut negative = match (m == n, m == 0) {
            (true, _) => part(0..n, Side::Tail),
            (_, true) => part(0..n, Side::Head),
            _ => Tensor::cat(vec![part(0..m, Side::Tail), part(m..n, Side::Head)], 0),
        };
        if self.known.is_some() || self.types.is_some() {
            let mask = self.left_out(batch, &drawn);
            let data = TensorData::new(mask, [n, count]);
            let mask = Tensor::<2>::from_data(data, (&self.device, rows.dtype()));
            negative = negative + mask.autodiff();
        }
        if loss == LinkLoss::SampledSoftmax {
            negative = negative - (count as f64 / entities as f64).ln();
        }
        let mean = loss.forward(positive, negative);
        let value = mean.clone().inner().into_scalar::<f64>() * n as f64;
        let each = vec![1.0 / n as f64; n];
        let embeddings = [(&given, &each[..]), (&targets, &each[..])];
        let total = match self.regularization(batch, &each, &embeddings) {
            Some(penalty) => mean + penalty,
            None => mean,
        };
        let grads = total.backward();
        let grad = rows.grad(&grads).unwrap_or_else(|| rows.clone().inner().zeros_like());
        self.update(grad, Some(ids.into()), grads, lr);
        value
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
