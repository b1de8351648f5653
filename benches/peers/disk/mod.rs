//! Measures reading, writing, partitioning and renumbering of graphs.

pub(crate) mod database;
pub(crate) mod partition;
pub(crate) mod reorder;
pub(crate) mod tables;
pub(crate) mod write;
