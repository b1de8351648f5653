//! Steps against entities that are drawn for a batch.

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};
use burn_gnn_models::select_rows;
use burn_gnn_ops::dropout;

use super::batch::Batch;
use super::state::{Steps, leaf};
use crate::decoders::decoder::{Decoder, Side};
use crate::losses::link_loss::LinkLoss;

/// Entities of a step against negatives.
pub(super) struct Drawn {
    /// Answer of each example.
    pub(super) answers: Vec<u32>,
    /// Negatives of all examples.
    pub(super) negatives: Vec<u32>,
    /// All entities of the step, ascending.
    pub(super) ids: Vec<u32>,
}

impl<D: Decoder> Steps<'_, D> {
    /// A step against entities that are drawn for the batch.
    pub(super) fn step_negatives(
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

    /// Negatives, which are those of all ranks, and the entities of the batch.
    pub(super) fn draw(&self, batch: &Batch, count: usize, step: u64) -> Drawn {
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
    pub(super) fn loss_of_negatives(
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
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::knowledge::config::{KgeConfig, KgeKind, KgeTraining};
    use crate::knowledge::steps::fixture::steps;

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
