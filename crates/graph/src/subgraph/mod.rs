//! Selects nodes and edges of a graph.

pub(crate) mod compact;
pub(crate) mod derive;
mod edit;
pub(crate) mod induced;
pub(crate) mod khop;
