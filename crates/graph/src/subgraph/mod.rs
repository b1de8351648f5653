//! Subgraphs: induced, by edges, by types, k-hop, compacted, edited.

pub(crate) mod compact;
pub(crate) mod derive;
mod edit;
pub(crate) mod induced;
pub(crate) mod khop;
