//! Prefetches batches ahead of training, by one loader for all samplers.

#[cfg(feature = "dataloader")]
mod burn_loader;
mod epoch;
mod features;
mod loader;
mod throughput;

pub use epoch::LoaderEpoch;
pub use features::{BatchFeatures, BatchRows, GraphFeatures, LoadedBatch};
pub use loader::{Loader, LoaderState};
pub use throughput::Throughput;
