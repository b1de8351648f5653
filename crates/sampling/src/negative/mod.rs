//! Samples pairs of nodes without an edge.

pub(crate) mod adjacency;
pub(crate) mod device;
pub(crate) mod free_pairs;
mod global;
pub(crate) mod sampler;
