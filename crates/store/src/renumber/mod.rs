//! Renumbers nodes for locality in files.

mod edges;
#[cfg(feature = "sampling")]
mod graph;
mod renumbering;
mod rows;

pub use edges::RenumberedEdges;
pub use renumbering::Renumbering;
#[cfg(feature = "sampling")]
pub use rows::RenumberedRows;
