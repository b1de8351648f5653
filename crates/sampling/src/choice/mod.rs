//! Chooses some of the in-edges of a node: fan-outs, strategies, and the choice itself.

pub(crate) mod choose;
pub(crate) mod edge_attributes;
pub(crate) mod fanout;
pub(crate) mod strategy;
