//! Graphs from files and to files.
//!
//! [`load_dataset`] reads a [`Dataset`] (graph, features, labels, splits) from a folder in either of two layouts, and
//! [`load_knowledge_graph`] triples for link prediction; [`karate_club`] needs no file. [`save_graph`] and [`load_graph`] keep
//! a graph of one's own; [`Table`], [`read_nodes`] and [`read_edges`] read single tables of one's own.
//!
//! Files are data from outside: whatever they hold, the answer is a value or a [`GraphError`](crate::GraphError) that names the
//! file, what was expected and what was found; never a panic, and never memory beyond the size of the files.

mod atomic;
mod dataset;
mod decoder;
mod files;
mod karate;
mod npy;
mod npy_layout;
#[cfg(test)]
mod npy_tests;
#[cfg(test)]
mod spoil;
mod store;
#[cfg(test)]
mod store_tests;
mod table;
mod tables_layout;
#[cfg(test)]
mod tables_tests;
mod triples;
#[cfg(test)]
mod triples_tests;

pub use atomic::write_atomic;
pub use dataset::{Dataset, Features, Split, load_dataset};
pub use decoder::{Decoder, EdgeTable, IdIndex, NodeTable, read_edges, read_nodes};
pub use karate::karate_club;
pub use store::{load_graph, save_graph};
pub use table::{Field, FieldType, Table, TableColumn};
pub use tables_layout::{EdgeTableEntry, NodeTableEntry, SplitTable, SplitTables, TableFeatures, TablesDescription};
pub use triples::{KnowledgeGraph, Triple, load_knowledge_graph};
