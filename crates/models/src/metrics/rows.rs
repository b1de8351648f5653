//! Labelled rows of a tensor of logits: nodes of a split, seeds of a batch.

use std::sync::Arc;

use burn::tensor::{Int, Tensor};

use crate::error::ModelError;

/// Labelled nodes of a training, validation or test set that this rank holds.
///
/// A clone shares the lists, and devices copy them once for as long as one of them lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Input-row numbers of the target type.
    pub index: Arc<[u32]>,
    /// Class of each row.
    pub labels: Arc<[u32]>,
    /// Number of rows over all ranks.
    pub total: usize,
}

impl Rows {
    /// Rows of a whole graph: `ids` with their labels.
    ///
    /// # Errors
    /// An id without a label (-1), out of range, or a label not below `num_classes`.
    pub fn new(ids: &[u32], labels: &[i64], num_classes: usize) -> Result<Self, ModelError> {
        let label = |&id: &u32| {
            let Some(&l) = labels.get(id as usize) else {
                let range = format!("0..{}", labels.len());
                return Err(ModelError::out_of_range("node of the split", range, id));
            };
            if l < 0 || l as usize >= num_classes {
                let (arg, range) = (format!("label of node {id}"), format!("0..{num_classes}"));
                return Err(ModelError::out_of_range(arg, range, l));
            }
            Ok(l as u32)
        };
        Ok(Self {
            index: ids.into(),
            labels: ids.iter().map(label).collect::<Result<_, _>>()?,
            total: ids.len(),
        })
    }

    /// Rows of a sampled batch: the row of each seed of this rank among the outputs (`seed_rows` of the batch), the
    /// labels of these seeds in the same order, and the seeds of all ranks, over which a loss is averaged
    /// (`global_seeds` of a loaded batch).
    ///
    /// ```
    /// use burn::tensor::{Device, Int, Tensor};
    /// use burn_gnn_models::Rows;
    /// let labels = Tensor::<1, Int>::from_data([2, 0], &Device::flex());
    /// let rows = Rows::of_batch(&[0, 1], labels.clone(), 5)?; // three more seeds are on other ranks
    /// assert_eq!((&rows.labels[..], rows.total), (&[2, 0][..], 5));
    /// assert!(Rows::of_batch(&[0], labels.clone(), 5).is_err()); // a label too many
    /// assert!(Rows::of_batch(&[0, 1], labels - 1, 5).is_err()); // -1 is no class
    /// # Ok::<(), burn_gnn_models::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// Not one label per row, or a label that is no class (negative). That labels are below the number of logits is
    /// for the loss to check.
    ///
    /// # Cost
    /// Labels are read from their device.
    pub fn of_batch(
        seed_rows: &[u32],
        labels: Tensor<1, Int>,
        total: usize,
    ) -> Result<Self, ModelError> {
        let labels: Vec<i64> = labels.into_data().iter::<i64>().collect();
        if labels.len() != seed_rows.len() {
            let range = format!("{} labels, one per seed", seed_rows.len());
            return Err(ModelError::out_of_range("labels", range, labels.len()));
        }
        if let Some(label) = labels.iter().find(|&&l| u32::try_from(l).is_err()) {
            let range = "classes, from 0 (leave nodes without a label out of the seeds)";
            return Err(ModelError::out_of_range("label of a seed", range, label));
        }
        let labels = labels.iter().map(|&l| l as u32).collect();
        Ok(Self { index: seed_rows.into(), labels, total })
    }

    /// The rows that a rank holds: `local[id]` is the rank's row of node `id`, if it owns it. The order of
    /// the split is kept, the total stays.
    #[must_use]
    pub fn on_rank(&self, local: impl Fn(u32) -> Option<u32>) -> Self {
        let local = |(&i, &l): (&u32, &u32)| Some((local(i)?, l));
        let (index, labels): (Vec<_>, Vec<_>) =
            self.index.iter().zip(&*self.labels).filter_map(local).unzip();
        Self { index: index.into(), labels: labels.into(), total: self.total }
    }
}
