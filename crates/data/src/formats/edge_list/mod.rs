//! Reads edge lists: text files with one edge per line.

mod format;
mod lines;
mod python_dict;
mod read;
#[cfg(test)]
mod tests;

pub use format::EdgeListFormat;
pub(crate) use read::read_declared;
pub use read::{load_edge_list, read_edge_list};
