//! Splits tensors by rows, with one gradient for all parts.

mod cpu;
mod first_rows;
mod join;
mod operator;
mod pending;
mod runs;

pub(crate) use first_rows::first_rows;
pub use runs::split_rows;
