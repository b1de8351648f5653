//! Layers, and the traits and views through which they read a graph.

pub(crate) mod attention;
pub(crate) mod conv;
pub(crate) mod convolution;
pub(crate) mod dense;
pub(crate) mod heterogeneous;
pub(crate) mod layer_views;
pub(crate) mod pooling;
pub(crate) mod propagation;
pub(crate) mod type_map;
