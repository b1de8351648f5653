//! Samplers on a device against those on the host.

mod negatives;
pub(crate) mod neighbors;
mod trees;
