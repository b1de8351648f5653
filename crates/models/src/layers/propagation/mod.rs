//! Layers that propagate features over several hops by normalised edge weights.

pub(crate) mod appnp_conv;
pub(crate) mod edge_weight_norm;
pub(crate) mod sg_conv;
