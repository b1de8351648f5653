//! Holds features of relations, graphs and blocks for message passing.

pub(crate) mod block_data;
pub(crate) mod graph_data;
pub(crate) mod relation_data;
