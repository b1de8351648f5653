//! Samples random walks.

pub(crate) mod pinsage;
pub(crate) mod random_walk;
