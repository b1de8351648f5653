//! Passes messages in custom layers, as PyG's `MessagePassing`.

pub(crate) mod edge_tensor;
pub(crate) mod endpoints;
pub(crate) mod message_passing;
