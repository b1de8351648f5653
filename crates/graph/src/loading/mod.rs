//! Batches made ahead of training.

mod batches;
#[cfg(feature = "dataloader")]
mod burn_loader;
mod epoch;
mod loader;
mod throughput;

pub use batches::{BatchMaker, BlockSampler, HeteroLinkBatches, LinkBatches, LoadedBatch, NodeBatches};
pub use epoch::LoaderEpoch;
pub use loader::{Loader, LoaderState};
pub use throughput::Throughput;
