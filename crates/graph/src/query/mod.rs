//! Reads edges, distances and statistics of a graph.

pub(crate) mod distances;
pub(crate) mod edges;
pub(crate) mod stats;
mod summary;
