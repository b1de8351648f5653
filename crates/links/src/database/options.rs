//! Options of training a recommendation task of a database.

use burn_gnn_data::{Database, Protocol};
use burn_gnn_models::{ModelError, RelationalOptions};

use crate::losses::link_loss::LinkLoss;

/// Options of [`train_recommendation`](crate::train_recommendation).
///
/// ```
/// use burn_gnn_links::{LinkLoss, RecommendationOptions};
/// let options = RecommendationOptions { loss: LinkLoss::Bpr, ..RecommendationOptions::default() };
/// assert_eq!(options.num_negatives, 512);
/// ```
#[derive(Clone, Debug)]
pub struct RecommendationOptions {
    /// Model of the towers, column encoders, protocol and training, as for
    /// [`train_database`](burn_gnn_models::train_database). `other_tasks`, `label_history`, `half_life`, `balanced`,
    /// `patience` and `workers` have no effect.
    pub base: RelationalOptions,
    /// Destinations that the entities of a batch are compared with, drawn uniformly for the batch; all if there are no
    /// more. 512 by default.
    pub num_negatives: usize,
    /// Destinations of a training row that an epoch learns, at most; more are drawn anew in each epoch. 4 by default.
    pub num_positives: usize,
    /// Loss of a destination of the label and the negatives; [`LinkLoss::SampledSoftmax`] by default.
    pub loss: LinkLoss,
    /// Whether the score of a pair has terms for the rows that refer to both, such as earlier orders of the same article;
    /// true by default.
    pub seen_rows: bool,
}

impl Default for RecommendationOptions {
    fn default() -> Self {
        Self {
            base: RelationalOptions::default(),
            num_negatives: 512,
            num_positives: 4,
            loss: LinkLoss::SampledSoftmax,
            seen_rows: true,
        }
    }
}

impl RecommendationOptions {
    /// The settings of [`RelationalOptions::for_task`] for a task.
    ///
    /// # Errors
    /// An unknown task.
    pub fn for_task(db: &Database, task: &str, protocol: Protocol) -> Result<Self, ModelError> {
        let base = RelationalOptions::for_task(db, task, protocol)?;
        Ok(Self { base, ..Self::default() })
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        for (arg, n) in
            [("num_negatives", self.num_negatives), ("num_positives", self.num_positives)]
        {
            ModelError::check_range(arg, "1..", n, n > 0)?;
        }
        ModelError::check_range(
            "batch_size",
            "1..",
            self.base.batch_size,
            self.base.batch_size > 0,
        )?;
        self.loss.check()
    }
}
