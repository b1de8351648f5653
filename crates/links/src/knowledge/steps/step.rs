//! Takes the step that the configuration of training names.

use super::state::Steps;
use crate::decoders::decoder::Decoder;
use crate::knowledge::config::{KgeTraining, KvsAllObjective};

impl<D: Decoder> Steps<'_, D> {
    /// Takes one step, and returns the sum of the losses of the examples, without regularisation.
    pub(crate) fn step(&mut self, examples: &[usize], (step, lr): (u64, f64)) -> f64 {
        let batch = self.batch(examples);
        match self.config.training {
            KgeTraining::OneVsAll => self.step_all(&batch, (true, 0.0), (step, lr)),
            KgeTraining::KvsAll { objective, answer_power } => {
                let is_softmax = objective == KvsAllObjective::Softmax;
                self.step_all(&batch, (is_softmax, answer_power), (step, lr))
            }
            KgeTraining::Negatives { count, loss, .. } => {
                self.step_negatives(&batch, (count, loss), (step, lr))
            }
        }
    }
}
