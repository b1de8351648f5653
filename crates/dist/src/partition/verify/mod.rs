//! Verifies the files of a partitioned graph.

pub(crate) mod report;
mod verifier;
