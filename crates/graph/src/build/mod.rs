//! Builds graphs of edges, points and `petgraph` graphs.

pub(crate) mod builder;
#[cfg(feature = "petgraph")]
mod petgraph_graphs;
pub(crate) mod points;
