//! Samples negative pairs: nodes without an edge between them.

pub(crate) mod adjacency;
pub(crate) mod device;
pub(crate) mod free_pairs;
mod global;
pub(crate) mod sampler;
