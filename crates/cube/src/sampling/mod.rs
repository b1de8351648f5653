//! Samples neighbours, blocks and negative pairs on a device, with the same random draws as on the host.

mod batch;
mod device_sampler;
mod draw;
mod error;
mod hops;
mod ids;
mod induced;
mod link;
mod negative;
mod renumber;
mod sample;
mod trees;

pub use batch::DeviceBatch;
pub use device_sampler::DeviceSampler;
pub use error::DeviceSampleError;
pub use induced::DeviceSubgraph;
pub use link::{DeviceLinkBatch, DeviceLinkRows, DeviceLinkSampler};
pub use negative::{DeviceNegativeSampler, DeviceNegatives};
