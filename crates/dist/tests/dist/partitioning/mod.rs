//! Partitions of graphs: assigned, written, read and verified.

pub(crate) mod chunked;
pub(crate) mod errors;
mod golden;
mod options;
pub(crate) mod partition;
mod verify;
