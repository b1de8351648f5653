//! Reads and checks parts from untrusted files.

mod attributes;
mod book;
pub(crate) mod parts;
mod tensors;
