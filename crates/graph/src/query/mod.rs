//! Queries: edges, degrees, distances, statistics and the summary of a graph.

pub(crate) mod distances;
pub(crate) mod edges;
pub(crate) mod stats;
mod summary;
