//! Holds the edges, nodes and messages that user-defined functions take.

pub(crate) mod by_degree;
pub(crate) mod degree_buckets;
pub(crate) mod destinations;
pub(crate) mod edge_batch;
pub(crate) mod edge_selection;
pub(crate) mod mailbox;
pub(crate) mod node_batch;
