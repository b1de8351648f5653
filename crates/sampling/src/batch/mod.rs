//! Seeds, the `Sampler` interface, and batches.

pub(crate) mod block;
pub(crate) mod degrees;
pub(crate) mod graph_info;
pub(crate) mod mini_batch;
pub(crate) mod sampled_batch;
pub(crate) mod sampler;
pub(crate) mod seed_order;
pub(crate) mod seeds;
pub(crate) mod stored_ids;
