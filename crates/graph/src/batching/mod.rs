//! Joins several graphs into one: disjoint unions (`batch`) and unions over shared nodes (`merge`).

pub(crate) mod batch;
pub(crate) mod batch_rows;
pub(crate) mod merge;
