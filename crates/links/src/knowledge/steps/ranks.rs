//! Steps by negatives where each rank computes a part of the examples.

use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};
use burn_gnn_models::{GradientSync, ModelError};

use super::state::{Steps, leaf};
use crate::decoders::decoder::Decoder;
use crate::gradients::{share, sum_gradients};
use crate::knowledge::entity_table::EntityTable;
use crate::losses::link_loss::LinkLoss;

impl<D: Decoder> Steps<'_, D> {
    /// A step by negatives, where this rank computes a part of the examples, and `table` has the embeddings
    /// of entities. The result is that of all ranks. Collective.
    pub(crate) fn step_on_ranks<S: GradientSync>(
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
}
