//! Layers that combine the outputs of other layers: across layers, per graph and per link.

pub(crate) mod jumping_knowledge;
pub(crate) mod link_scorer;
pub(crate) mod readout;
