//! Caches for data that is derived from a graph: computed once, accounted for, freed on request.

pub(crate) mod attached;
mod cell;
mod map;

pub use attached::Attached;
pub use cell::Derived;
pub use map::{CacheUses, DerivedMap};
