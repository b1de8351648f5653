//! Errors of graphs, and the formatting and panicking helpers for them.

pub(crate) mod count_noun;
pub(crate) mod graph_error;
pub(crate) mod or_panic;

pub use graph_error::GraphError;
