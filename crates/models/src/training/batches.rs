//! Defines what training takes batches from.

use burn_gnn_data::Links;
use burn_gnn_graph::GraphError;
use burn_gnn_sampling::{BatchFeatures, LoadedBatch, Loader, Sampler};

use crate::error::ModelError;
use crate::metrics::rows::Rows;

/// A data set in batches of type `B`: what [`fit`](crate::fit) trains on and validates on, and
/// [`evaluate`](crate::evaluate) measures.
///
/// | data set | batches of an epoch |
/// | --- | --- |
/// | [`Loader`] | those of its epoch, shuffled by its seed |
/// | [`Rows`] | one: the rows of a full graph |
/// | [`Links`](burn_gnn_data::Links) | one: the pairs of a full graph |
/// | `Vec<B>` | all, in order |
/// | a function of the epoch that returns an iterator of `Result<B, ModelError>` | those |
/// | `()` | none: training without validation |
///
/// Batches must be a function of the epoch alone, so that a run that is resumed has those of one that was not
/// interrupted. Validation and tests always take those of epoch 0.
pub trait Batches<B> {
    /// The batches of an epoch, which counts from 0.
    fn batches(&self, epoch: u64) -> impl Iterator<Item = Result<B, ModelError>>;
}

impl<S: Sampler, F: BatchFeatures<S>> Batches<LoadedBatch<S::Batch, S::Seed>> for Loader<S, F> {
    fn batches(
        &self,
        epoch: u64,
    ) -> impl Iterator<Item = Result<LoadedBatch<S::Batch, S::Seed>, ModelError>> {
        self.epoch(epoch).map(|batch| batch.map_err(of_sampler))
    }
}

/// The error of a sampler, as one of this crate where it is about the graph.
fn of_sampler(error: impl std::error::Error + Send + Sync + 'static) -> ModelError {
    let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
    match error.downcast::<GraphError>() {
        Ok(error) => ModelError::Graph(*error),
        Err(error) => ModelError::Batch(error),
    }
}

impl Batches<Rows> for Rows {
    fn batches(&self, _: u64) -> impl Iterator<Item = Result<Rows, ModelError>> {
        (self.total > 0).then(|| Ok(self.clone())).into_iter()
    }
}

impl Batches<Links> for Links {
    fn batches(&self, _: u64) -> impl Iterator<Item = Result<Links, ModelError>> {
        (!self.src.is_empty()).then(|| Ok(self.clone())).into_iter()
    }
}

impl<B: Clone> Batches<B> for Vec<B> {
    fn batches(&self, _: u64) -> impl Iterator<Item = Result<B, ModelError>> {
        self.iter().cloned().map(Ok)
    }
}

impl<B> Batches<B> for () {
    fn batches(&self, _: u64) -> impl Iterator<Item = Result<B, ModelError>> {
        std::iter::empty()
    }
}

impl<B, F, I> Batches<B> for F
where
    F: Fn(u64) -> I,
    I: IntoIterator<Item = Result<B, ModelError>>,
{
    fn batches(&self, epoch: u64) -> impl Iterator<Item = Result<B, ModelError>> {
        self(epoch).into_iter()
    }
}
