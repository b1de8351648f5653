//! Steps against all entities.

use burn::tensor::IndexingUpdateOp;
use burn_gnn_models::{id_tensor, select_rows};
use burn_gnn_ops::dropout;

use super::batch::Batch;
use super::potential::{Potential, all_candidates};
use super::state::{Steps, leaf};
use crate::decoders::decoder::Decoder;

impl<D: Decoder> Steps<'_, D> {
    /// A step against all entities.
    pub(super) fn step_all(
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
}
