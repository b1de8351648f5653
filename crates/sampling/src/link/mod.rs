//! Samples batches of edges for link prediction.

pub(crate) mod exclusion;
pub(crate) mod hetero;
pub(crate) mod sampler;
