//! Samples subgraphs: induced, ShaDow, Cluster-GCN and GraphSAINT.

pub(crate) mod cluster;
mod induced;
pub(crate) mod saint;
pub(crate) mod shadow;
