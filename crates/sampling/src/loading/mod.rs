//! Prefetches batches with features and labels: one loader for all samplers.

#[cfg(feature = "dataloader")]
mod burn_loader;
pub(crate) mod epoch;
pub(crate) mod features;
pub(crate) mod loader;
pub(crate) mod parts;
pub(crate) mod throughput;
