//! Chooses edges of a node.

pub(crate) mod choose;
pub(crate) mod edge_attributes;
pub(crate) mod fanout;
pub(crate) mod strategy;
