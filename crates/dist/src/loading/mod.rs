//! Loads batches over ranks: seeds, features and the samplers that a [`Loader`](burn_gnn_sampling::Loader) takes.

mod features;
mod rank_sampler;
mod seeds;

pub use features::{DistFeatures, Presampling};
pub use rank_sampler::RankSampler;
pub(crate) use rank_sampler::in_order;
pub(crate) use seeds::{ELSEWHERE, SeedLists};
