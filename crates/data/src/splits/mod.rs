//! Random splits of nodes and of links into training, validation and test.

pub(crate) mod inductive_split;
pub(crate) mod link_parts;
pub(crate) mod link_split;
#[cfg(test)]
mod link_split_tests;
pub(crate) mod node_split;
pub(crate) mod time_split;
