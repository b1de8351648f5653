//! Reads of many small pieces of a file, past the page cache.

mod aligned;
mod reader;
mod request;
mod threads;
#[cfg(target_os = "linux")]
mod uring;

pub(crate) use reader::Reader;
pub(crate) use request::{Read, SECTOR};
