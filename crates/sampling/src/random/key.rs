//! Keys the random draws of samplers.

use burn_gnn_graph::Stream;

/// What all draws of one batch have in common.
///
/// Every draw of a sampler is a pure function of this key, the hop, the relation (by name), the **original** id of the
/// node drawn for, and the position of a candidate among the node's candidates in ascending original edge id. So a
/// batch is the same for any number of threads, in any order of batches, and on a renumbered graph, and what is no
/// candidate has no influence.
///
/// ```
/// use burn_gnn_sampling::SampleKey;
/// let key = SampleKey::new(7).at(2, 314); // seed 7, epoch 2, global step 314
/// assert_eq!((key.seed, key.epoch, key.step), (7, 2, 314));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// Seed of the run.
    pub seed: u64,
    /// Epoch, from 0.
    pub epoch: u64,
    /// Batch over all epochs, from 0.
    pub step: u64,
}

impl SampleKey {
    /// The first batch of a run.
    pub fn new(seed: u64) -> Self {
        Self { seed, epoch: 0, step: 0 }
    }
    /// The same run at another batch.
    #[must_use]
    pub fn at(self, epoch: u64, step: u64) -> Self {
        Self { epoch, step, ..self }
    }
    /// The draws of this batch for one purpose.
    pub(crate) fn stream(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &format!("{purpose}/{}", self.epoch), self.step)
    }
}
