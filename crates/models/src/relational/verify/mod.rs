//! Verifies that no future row is read, and finds columns that leak.

pub(crate) mod leaks;
pub(crate) mod no_future;
