//! Makes one batch with its features.

use std::sync::Arc;
use std::time::Instant;

use tracing::debug_span;

use crate::batch::sampled_batch::SampledBatch;
use crate::batch::sampler::Sampler;
use crate::batch::seeds::Seeds;
use crate::loading::features::{BatchFeatures, LoadedBatch};
use crate::loading::throughput::Throughput;
use crate::random::key::SampleKey;

pub(super) type Made<S> = Result<
    (LoadedBatch<<S as Sampler>::Batch, <S as Sampler>::Seed>, Throughput),
    <S as Sampler>::Error,
>;

/// Sampler, seeds and features of a loader, shared with its worker threads.
pub(super) struct Parts<S: Sampler, F> {
    pub(super) sampler: Arc<S>,
    pub(super) seeds: Arc<Seeds<S::Seed>>,
    pub(super) features: F,
}

impl<S: Sampler, F: Clone> Clone for Parts<S, F> {
    fn clone(&self) -> Self {
        Self {
            sampler: self.sampler.clone(),
            seeds: self.seeds.clone(),
            features: self.features.clone(),
        }
    }
}

impl<S: Sampler, F: BatchFeatures<S>> Parts<S, F> {
    /// Makes the batch of the seeds at these positions, and measures its counts and times.
    pub(super) fn make(&self, positions: &[u32], key: SampleKey) -> Made<S> {
        let begin = Instant::now();
        let seeds = self.seeds.select(positions);
        let batch = debug_span!("sample").in_scope(|| self.sampler.sample_batch(&seeds, key))?;
        let sampled = Instant::now();
        let seeds = self.sampler.own_seeds(seeds, &batch);
        let rows = debug_span!("features")
            .in_scope(|| self.features.rows(&self.sampler, &batch, &seeds))?;
        let (sampling, fetching) = (sampled - begin, sampled.elapsed());
        let batch = LoadedBatch::new(batch, seeds, rows);
        let throughput = Throughput {
            batches: 1,
            seeds: batch.num_seeds(),
            edges: batch.batch.num_edges(),
            bytes: batch.feature_bytes(),
            sampling,
            fetching,
            ..Throughput::default()
        };
        Ok((batch, throughput))
    }
}
