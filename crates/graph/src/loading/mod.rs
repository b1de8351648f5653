//! Batches made ahead of training, by one loader for all samplers.

#[cfg(feature = "dataloader")]
mod burn_loader;
mod epoch;
mod features;
mod loader;
mod sampler;
mod seeds;
mod throughput;

pub use epoch::LoaderEpoch;
pub use features::{BatchFeatures, BatchRows, GraphFeatures, LoadedBatch};
pub use loader::{Loader, LoaderState};
pub use sampler::{SampledBatch, Sampler};
pub use seeds::{SeedKind, Seeds};
pub use throughput::Throughput;
