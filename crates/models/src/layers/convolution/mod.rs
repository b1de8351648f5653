//! Layers that sum, average or take extrema of messages without attention.

pub(crate) mod edge_conv;
pub(crate) mod gcn_conv;
pub(crate) mod gin_conv;
pub(crate) mod gin_update;
pub(crate) mod gine_conv;
pub(crate) mod pna_conv;
pub(crate) mod sage_conv;
