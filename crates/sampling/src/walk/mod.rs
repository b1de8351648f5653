//! Samples random walks.

pub(crate) mod node2vec;
pub(crate) mod pinsage;
pub(crate) mod random_walk;
pub(crate) mod step_edges;
