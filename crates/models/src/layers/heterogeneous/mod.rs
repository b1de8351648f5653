//! Layers on several node and edge types.

pub(crate) mod gated_graph_conv;
pub(crate) mod han_conv;
pub(crate) mod hetero_graph_conv;
pub(crate) mod hetero_layer;
pub(crate) mod hgt_conv;
pub(crate) mod one_hot_conv;
pub(crate) mod rel_graph_conv;
pub(crate) mod rel_weights;
pub(crate) mod stacked_relations;
pub(crate) mod typed_linear;
