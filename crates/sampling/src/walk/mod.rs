//! Walks along edges.

pub(crate) mod pinsage;
pub(crate) mod random_walk;
