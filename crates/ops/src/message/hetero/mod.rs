//! Passes messages over several edge types.

pub(crate) mod all_etypes;
pub(crate) mod cross;
