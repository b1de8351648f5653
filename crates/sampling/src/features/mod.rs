//! Reads features from memory, mapped files or devices.

mod by_part;
pub(crate) mod device;
pub(crate) mod format;
pub(crate) mod hot_nodes;
pub(crate) mod hotness;
pub(crate) mod mapped;
pub(crate) mod memory;
mod packed;
pub(crate) mod placement;
pub(crate) mod row_type;
pub(crate) mod source;
pub(crate) mod tiered;
pub(crate) mod unified;
