//! Relations: the edges between two sets of nodes, in memory or in a file.

pub(crate) mod checks;
pub(crate) mod compress;
mod compressed;
#[cfg(test)]
mod derived_tests;
mod edge_reader;
pub(crate) mod edges;
mod from_compressed;
mod layouts;
mod sort_by_dst;
mod stack;
mod stored;
#[cfg(test)]
mod tests;
mod whole_number;

pub use compressed::Compressed;
pub use edge_reader::EdgeReader;
pub use edges::Relation;
pub use layouts::LayoutArrays;
pub use stack::RelationStack;
pub use whole_number::WholeNumber;
