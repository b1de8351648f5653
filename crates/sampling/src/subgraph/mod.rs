//! Samples subgraphs, on which a network of any depth runs.

pub(crate) mod cluster;
mod induced;
pub(crate) mod saint;
pub(crate) mod shadow;
