//! One part of a graph.

pub(crate) mod attributes;
pub(crate) mod check;
pub(crate) mod partition;
mod summary;
mod to_graph;
