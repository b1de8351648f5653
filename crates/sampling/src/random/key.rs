//! Defines `SampleKey`, the key of all random draws of a batch.

use burn_gnn_graph::Stream;

/// The key of all random draws of one batch.
///
/// Every draw of a sampler is a pure function of this key, the hop, the relation (by name), the **original** id of the
/// destination, and the position of a candidate among the candidates in ascending original edge id. A batch therefore
/// does not depend on the number of threads, on the order in which batches are made, on a renumbering of the graph, or
/// on edges that are no candidates.
///
/// ```
/// use burn_gnn_sampling::SampleKey;
/// let key = SampleKey::new(7).at(2, 314); // seed 7, epoch 2, global step 314
/// assert_eq!((key.seed, key.epoch, key.step), (7, 2, 314));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// Seed of the training run.
    pub seed: u64,
    /// Epoch, counted from 0.
    pub epoch: u64,
    /// Batch, counted from 0 over all epochs.
    pub step: u64,
}

impl SampleKey {
    /// The key of the first batch of a run.
    pub fn new(seed: u64) -> Self {
        Self { seed, epoch: 0, step: 0 }
    }
    /// The key of another batch of the same run.
    #[must_use]
    pub fn at(self, epoch: u64, step: u64) -> Self {
        Self { epoch, step, ..self }
    }
    /// The random stream of this batch for one purpose.
    pub(crate) fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{purpose}/{}", self.epoch), self.step)
    }
}
