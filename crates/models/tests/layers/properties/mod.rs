//! Properties that every layer has.

mod blocks;
mod caches;
mod custom;
mod edge_inputs;
mod empty;
pub(crate) mod inference;
mod learning;
pub(crate) mod numbering;
mod threads;
mod types;
mod zero_variance;
