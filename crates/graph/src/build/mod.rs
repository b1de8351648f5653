//! Constructs graphs from edges, from points and from `petgraph` graphs.

pub(crate) mod builder;
#[cfg(feature = "petgraph")]
mod petgraph_graphs;
pub(crate) mod points;
