//! Saves and loads graphs in this library's own files.

pub(crate) mod graph;
pub(crate) mod topology;
