//! Layers without edges that other layers are made of.

pub(crate) mod lstm;
pub(crate) mod mlp;
