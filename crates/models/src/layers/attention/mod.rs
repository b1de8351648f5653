//! Layers that weight messages by attention coefficients or gates.

pub(crate) mod gat_conv;
pub(crate) mod gatv2_conv;
pub(crate) mod heads;
pub(crate) mod res_gated_graph_conv;
pub(crate) mod transformer_conv;
