//! Samples neighbours over several hops.

pub(crate) mod block_sampler;
mod bytes;
pub(crate) mod device;
pub(crate) mod frontier;
mod hop;
mod memory;
mod relabel;
mod sample;
pub(crate) mod sampler;
mod stored_relation;
pub(crate) mod trees;
