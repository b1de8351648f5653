//! Corrupts links: uniform, popular, hard, in-batch, historical and inductive negatives.

pub(crate) mod corruption;
pub(crate) mod fact_filter;
pub(crate) mod in_batch;
