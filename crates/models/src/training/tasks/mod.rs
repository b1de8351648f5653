//! Tasks of the library: nodes, seeds of a loader, links, graphs.

pub(crate) mod graph_task;
pub(crate) mod link_task;
pub(crate) mod node_classifier;
pub(crate) mod node_task;
pub(crate) mod seed_task;
