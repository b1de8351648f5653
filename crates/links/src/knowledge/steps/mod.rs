//! Steps of training embeddings of knowledge graphs.

mod all_entities;
mod batch;
#[cfg(all(test, feature = "flex"))]
mod fixture;
mod negatives;
mod potential;
mod ranks;
pub(crate) mod state;
mod step;
