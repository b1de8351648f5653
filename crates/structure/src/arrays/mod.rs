//! Arrays that graphs are made of: shared `u32` arrays, lists of lists, lists of strings.

mod ragged;
pub(crate) mod shared_array;
mod texts;

pub use ragged::Ragged;
pub use texts::Texts;
