//! Whole models.

pub(crate) mod gat;
pub(crate) mod gcn;
pub(crate) mod gin;
pub(crate) mod heterogeneous;
pub(crate) mod hgt;
pub(crate) mod homogeneous;
pub(crate) mod rgcn;
pub(crate) mod sage;
