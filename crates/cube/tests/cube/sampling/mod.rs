//! Compares samplers on a device with samplers on the host.

mod negatives;
pub(crate) mod neighbors;
mod trees;
