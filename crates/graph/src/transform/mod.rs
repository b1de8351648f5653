//! Transforms that change the edges or the numbering of a graph.

pub(crate) mod convert;
pub(crate) mod line_graph;
mod metapath;
mod product;
pub(crate) mod reorder;
pub(crate) mod reverse;
pub(crate) mod self_loops;
pub(crate) mod to_simple;
