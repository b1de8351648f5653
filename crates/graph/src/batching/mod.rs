//! Joins several graphs into one.

pub(crate) mod batch;
pub(crate) mod batch_rows;
pub(crate) mod merge;
