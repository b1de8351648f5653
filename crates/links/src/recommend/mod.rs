//! Recommends items to users.

pub(crate) mod eigen;
pub(crate) mod graph_filter;
pub(crate) mod interaction_graph;
pub(crate) mod light_gcn;
pub(crate) mod pair_encoder;
pub(crate) mod popularity;
pub(crate) mod ratings;
pub(crate) mod recommendations;
pub(crate) mod training;
pub(crate) mod two_tower;
