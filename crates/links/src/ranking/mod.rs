//! Ranks candidates in bounded memory, and selects the best of them.

pub(crate) mod config;
mod count;
pub(crate) mod dot;
pub(crate) mod id_lists;
pub(crate) mod links;
pub(crate) mod metrics;
pub(crate) mod ranks;
mod scores;
pub(crate) mod timed_tails;
pub(crate) mod top_k;
pub(crate) mod true_tails;
