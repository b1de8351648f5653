//! Measures operators.

pub(crate) mod calls;
pub(crate) mod dense;
pub(crate) mod edges;
pub(crate) mod features;
pub(crate) mod inject;
pub(crate) mod messages;
pub(crate) mod ops;
pub(crate) mod precision;
