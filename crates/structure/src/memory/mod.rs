//! Allocates, accounts for and prefetches memory.

pub(crate) mod bytes;
pub(crate) mod huge_pages;
pub(crate) mod prefetch;
pub(crate) mod reserve;
