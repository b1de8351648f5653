//! Measures epochs, on full graphs and on mini-batches.

mod nets;
pub(crate) mod plan;
pub(crate) mod sampling;
pub(crate) mod train;
pub(crate) mod typed;
