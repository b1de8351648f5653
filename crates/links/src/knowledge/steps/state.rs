//! Model and optimizers in training, and the terms that all kinds of steps share.

use std::ops::Range;
use std::sync::Arc;

use burn::optim::{AdaGradConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use burn_gnn_models::{FusedAdamConfig, id_tensor};
use burn_gnn_ops::{Stream, dropout};

use super::batch::Batch;
use crate::decoders::decoder::{Decoder, Side};
use crate::knowledge::config::{KgeConfig, KgeOptimizer, KgeTraining};
use crate::knowledge::queries::{Queries, both_ways};
use crate::knowledge::table_optimizer::{ADAGRAD_EPSILON, TableOptimizer};
use crate::knowledge::type_constraints::TypeConstraints;
use crate::ranking::true_tails::TrueTails;

/// Model and optimizers in training. The table of entities is not tracked, so that its steps are in place.
pub(crate) struct Steps<'a, D: Decoder> {
    pub(super) config: &'a KgeConfig,
    pub(crate) entities: Tensor<2>,
    pub(crate) decoder: D,
    of_entities: Option<TableOptimizer>,
    pub(super) of_decoder: ModuleOptimizer,
    pub(super) num_entities: usize,
    num_relations: usize,
    pub(crate) queries: Queries,
    /// Answers in train, if negatives are filtered.
    pub(super) known: Option<TrueTails>,
    pub(super) types: Option<TypeConstraints>,
    pub(super) device: Device,
}

impl<'a, D: Decoder> Steps<'a, D> {
    /// `entities` without gradient tracking, `decoder` with. If ranks own the embeddings, `entities` has no row.
    pub(crate) fn new(
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
            known: filtered.then(|| TrueTails::new(both_ways(train, num_relations))),
            types: constrained.then(|| TypeConstraints::new(train, num_relations)),
            queries,
        }
    }

    /// The batch of some examples.
    pub(super) fn batch(&self, examples: &[usize]) -> Batch {
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

    pub(super) fn stream(&self, purpose: &str, step: u64) -> Stream {
        Stream::new(self.config.seed, purpose, step)
    }

    /// Queries of a batch whose given embeddings are `given`.
    pub(super) fn query(&self, batch: &Batch, given: Tensor<2>, step: u64) -> Tensor<2> {
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
    pub(super) fn regularization(
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

    pub(super) fn vector(&self, values: Vec<f64>) -> Tensor<1> {
        let n = values.len();
        let on = (&self.device, self.entities.dtype());
        Tensor::from_data(TensorData::new(values, [n]), on)
    }

    /// Applies gradients to the table of entities, of all rows or of `ids`, and to the decoder.
    pub(super) fn update(
        &mut self,
        grad: Tensor<2>,
        ids: Option<Arc<[u32]>>,
        grads: Gradients,
        lr: f64,
    ) {
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
pub(super) fn leaf(x: Tensor<2>) -> Tensor<2> {
    x.autodiff().require_grad()
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn_gnn_models::select_rows;

    use super::*;
    use crate::knowledge::config::KgeKind;
    use crate::knowledge::steps::fixture::steps;

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
}
