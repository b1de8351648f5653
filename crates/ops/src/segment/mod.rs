//! Reductions over consecutive rows.

mod segments;
pub use segments::{Segments, TypeIndex};
