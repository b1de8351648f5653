//! Reads and writes graphs, and loads well-known data sets ([`datasets`]).
//!
//! The chapter on data of the book: <https://github.com/burn-gnn/burn-gnn/blob/main/docs/data.md>.
//!
//! [`load_dataset`] reads a [`Dataset`] (graph, features, labels, splits) from a folder in either of two layouts,
//! [`load_ogb`] the raw files of the Open Graph Benchmark, [`load_knowledge_graph`] triples for link prediction,
//! [`load_tu_dataset`] many graphs; [`load_edge_list`], [`load_matrix_market`], [`load_node_link`] and `load_graphml` read
//! what other programs write; [`karate_club`] and [`crates_graph`] need no file. [`save_graph`] and [`load_graph`] keep a user's graph, a
//! [`Topology`] its structure alone, which may stay in the file; [`Builder`] makes a graph of tables in GraphLearn's
//! format or of CSV files, [`read_nodes`] and [`read_edges`] read single ones.
//!
//! Files are data from outside: whatever they hold, the answer is a value or a [`DataError`] that
//! names the file, what was expected and what was found; never a panic, and never memory beyond the size of the files.

#![forbid(unsafe_code)]

mod attributed_graph;
mod checksum;
#[cfg(test)]
mod corrupt_file;
mod crates_graph;
mod data_column;
mod dataset;
mod dataset_graph;
pub mod datasets;
mod decompression_limit;
mod dgl;
mod edge_list;
#[cfg(test)]
mod faults_tests;
mod files;
#[cfg(feature = "npz")]
mod gnn_benchmark;
mod graph_set;
#[cfg(feature = "graphml")]
mod graphml;
mod host_column;
mod id_converter;
mod interner;
mod karate;
mod layouts;
mod link_split;
#[cfg(test)]
mod link_split_tests;
mod matrix;
mod matrix_market;
mod metadata;
#[cfg(test)]
mod migration_tests;
mod narrow;
mod node_link;
mod node_split;
mod npy;
mod npy_layout;
#[cfg(test)]
mod npy_tests;
#[cfg(feature = "npz")]
mod npz;
mod ogb;
#[cfg(feature = "parquet")]
mod parquet;
mod pickle;
#[cfg(feature = "rdf")]
mod rdf;
mod sparse;
mod store;
mod table_writer;
mod tables;
mod tables_layout;
#[cfg(test)]
mod tables_tests;
mod topology;
#[cfg(feature = "torch")]
mod torch;
mod triples;
#[cfg(test)]
mod triples_tests;
mod tu_dataset;

#[doc(inline)]
#[doc(hidden)]
pub use burn_gnn_files::internal::read_file;
pub use burn_gnn_files::{
    AtomicFile, DataError, DirLock, NpyHead, create_dirs, lock_dir, sync_dir, write_atomic,
};
#[cfg(test)]
pub(crate) use corrupt_file::{damage, spoil};
pub use crates_graph::crates_graph;
pub use dataset::{Dataset, Features, Split};
pub(crate) use dataset::{check_split, described_class_names};
#[cfg(feature = "yaml")]
pub use dgl::load_dgl_csv;
pub use dgl::{ChunkedData, ChunkedDataset, ChunkedStructure, load_chunked, open_chunked};
pub use edge_list::{EdgeListFormat, load_edge_list, read_edge_list};
#[cfg(feature = "npz")]
pub use gnn_benchmark::load_gnn_benchmark;
pub use graph_set::GraphSet;
#[cfg(feature = "graphml")]
pub use graphml::load_graphml;
pub use id_converter::{IdConverter, TypeIds};
pub use karate::karate_club;
pub use layouts::load_dataset;
pub use link_split::{LinkPart, LinkSplit, Links, RandomLinkSplit};
pub use matrix_market::{MatrixMarketOptions, load_matrix_market, load_matrix_market_with};
pub use node_link::load_node_link;
pub use node_split::{RandomNodeSplit, Share};
#[cfg(test)]
pub(crate) use npy::npy_bytes;
pub use npy::{NpyArray, NpyValues, read_npy, write_npy};
#[cfg(all(test, feature = "npz"))]
pub(crate) use npz::npz_bytes;
#[cfg(feature = "npz")]
pub use npz::{Npz, load_scipy_npz, read_scipy_npz};
pub use ogb::{OgbGraph, load_ogb, load_ogb_graph};
#[cfg(feature = "rdf")]
pub use rdf::{RDF_NODE, RdfGraph, RdfOptions, RdfSyntax, read_rdf};
pub(crate) use sparse::csr;
pub use store::{MapOptions, MappedGraph, load_graph, map_graph, map_graph_with, save_graph};
pub use table_writer::{write_edge_table, write_node_table};
pub use tables::{
    AttrType, Attributes, Builder, Csv, Decoder, Delimiter, Duplicates, EdgeTable, Encoding,
    FLOAT_ATTRS, FeatureKind, FeaturePart, FeatureSpec, INT_ATTRS, IntBuckets, LABEL, LABEL_TEXT,
    NodeTable, ReadOptions, Slot, Source, TEXT_KEYS, TIMESTAMP, TableColumns, TextHash, TimeUnit,
    UnknownNodes, WEIGHT, class_names, list_attr, read_edges, read_edges_with, read_nodes,
    read_nodes_with, text_attr,
};
pub use tables_layout::{
    EdgeTableEntry, NodeTableEntry, SplitTable, SplitTables, TableFeatures, TablesDescription,
};
pub use topology::Topology;
#[cfg(feature = "torch")]
pub use torch::{NamedTensor, read_torch};
pub use triples::{KnowledgeGraph, Triple, load_knowledge_graph};
pub use tu_dataset::load_tu_dataset;
