//! Layers that combine the outputs of other layers: across layers and per graph.

pub(crate) mod jumping_knowledge;
pub(crate) mod readout;
