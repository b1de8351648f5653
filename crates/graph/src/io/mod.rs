//! Graphs from files and to files.
//!
//! [`load_dataset`] reads a [`Dataset`] (graph, features, labels, splits) from a folder in either of two layouts,
//! [`load_ogb`] the raw files of the Open Graph Benchmark, [`load_knowledge_graph`] triples for link prediction;
//! [`karate_club`] and [`crates_graph`] need no file. [`save_graph`] and [`load_graph`] keep a user's graph;
//! [`Builder`] makes a graph of tables in GraphLearn's format or of CSV files, [`read_nodes`] and [`read_edges`] read
//! single ones.
//!
//! Files are data from outside: whatever they hold, the answer is a value or a [`GraphError`](crate::GraphError) that
//! names the file, what was expected and what was found; never a panic, and never memory beyond the size of the files.

pub(crate) mod checksum;
mod column;
mod crates_graph;
mod dataset;
mod dataset_graph;
mod dgl;
mod edge_list;
#[cfg(test)]
mod faults_tests;
pub(crate) mod files;
#[cfg(test)]
#[path = "../../tests/faults/harness.rs"]
pub(crate) mod harness;
mod karate;
mod link_split;
#[cfg(test)]
mod link_split_tests;
mod matrix;
mod npy;
mod npy_layout;
#[cfg(test)]
mod npy_tests;
#[cfg(feature = "npz")]
mod npz;
mod ogb;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "rdf")]
mod rdf;
mod sparse;
mod split;
#[cfg(test)]
mod spoil;
mod store;
mod store_extras;
#[cfg(test)]
mod store_tests;
pub(crate) mod tables;
mod tables_layout;
#[cfg(test)]
mod tables_tests;
mod tensor_file;
pub(crate) mod tensor_writer;
#[cfg(feature = "torch")]
mod torch;
mod triples;
#[cfg(test)]
mod triples_tests;

pub use crate::cut::{cut as cut_text, cut_quoted};
pub use crate::files::open as open_file;
pub use crate::files::{AtomicFile, DirLock, NpyHead, create_dirs, lock_dir, sync_dir, write_atomic};
pub use crates_graph::crates_graph;
pub use dataset::{Dataset, Features, Split, load_dataset};
pub(crate) use dataset::{check_split, class_names};
pub(crate) use dgl::chunked_types;
pub use dgl::{ChunkedData, ChunkedGraph, ChunkedStructure, load_chunked, open_chunked};
#[cfg(feature = "yaml")]
pub use dgl::{GraphSet, load_dgl_csv};
pub use edge_list::{EdgeListFormat, load_edge_list, read_edge_list};
#[doc(hidden)]
pub use files::read_file;
#[cfg(feature = "download")]
pub(crate) use files::{open_zip, zip_error};
pub use karate::karate_club;
pub use link_split::{LinkPart, LinkSplit, Links, RandomLinkSplit};
#[cfg(test)]
pub(crate) use npy::npy_bytes;
pub use npy::{NpyArray, NpyValues, read_npy};
#[cfg(all(test, feature = "npz"))]
pub(crate) use npz::npz_bytes;
#[cfg(feature = "npz")]
pub use npz::{Npz, load_scipy_npz, read_scipy_npz};
pub use ogb::load_ogb;
#[cfg(feature = "rdf")]
pub use rdf::{RDF_NODE, RdfGraph, RdfOptions, RdfSyntax, read_rdf};
pub(crate) use sparse::csr;
pub use split::{RandomNodeSplit, Share};
#[cfg(test)]
pub(crate) use spoil::{damage, spoil};
pub use store::{MapOptions, MappedGraph, load_graph, map_graph, map_graph_with, save_graph};
pub use tables::{
    AttrType, Attributes, Builder, Csv, Decoder, Delimiter, Duplicates, EdgeTable, FLOAT_ATTRS, FeatureKind, FeaturePart, FeatureSpec,
    INT_ATTRS, IntBuckets, LABEL, NodeTable, ReadOptions, Slot, Source, TEXT_KEYS, TIMESTAMP, TextHash, UnknownNodes, WEIGHT, list_attr,
    read_edges, read_edges_with, read_nodes, read_nodes_with, text_attr,
};
pub use tables_layout::{EdgeTableEntry, NodeTableEntry, SplitTable, SplitTables, TableFeatures, TablesDescription};
#[cfg(feature = "torch")]
pub use torch::{NamedTensor, read_torch};
pub use triples::{KnowledgeGraph, Triple, load_knowledge_graph};
