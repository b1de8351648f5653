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

mod arrays;
mod columns;
mod dataset;
pub mod datasets;
mod files;
mod formats;
mod layouts;
mod saved;
mod splits;
mod table_writer;
mod tables;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use burn_gnn_files::internal::read_file;
pub use burn_gnn_files::{
    AtomicFile, DataError, DirLock, NpyHead, create_dirs, lock_dir, sync_dir, write_atomic,
};

pub use arrays::npy::{NpyArray, NpyValues, read_npy, write_npy};
#[cfg(feature = "torch")]
pub use arrays::torch::{NamedTensor, read_torch};
pub use columns::narrow::RoundedCount;
pub use dataset::features::Features;
pub use dataset::graph_set::GraphSet;
pub use dataset::id_converter::{IdConverter, TypeIds};
pub use dataset::node_dataset::Dataset;
pub use dataset::split::Split;
pub use datasets::crates_graph::crates_graph;
pub use datasets::karate::karate_club;
pub use formats::edge_list::{EdgeListFormat, load_edge_list, read_edge_list};
#[cfg(feature = "graphml")]
pub use formats::graphml::load_graphml;
pub use formats::matrix_market::{
    MatrixMarketOptions, load_matrix_market, load_matrix_market_with,
};
pub use formats::node_link::load_node_link;
#[cfg(feature = "npz")]
pub use formats::npz::{Npz, load_scipy_npz, read_scipy_npz};
#[cfg(feature = "rdf")]
pub use formats::rdf::{RDF_NODE, RdfGraph, RdfOptions, RdfSyntax, read_rdf};
#[cfg(feature = "yaml")]
pub use layouts::dgl::load_dgl_csv;
pub use layouts::dgl::{ChunkedData, ChunkedDataset, ChunkedStructure, load_chunked, open_chunked};
#[cfg(feature = "npz")]
pub use layouts::gnn_benchmark::load_gnn_benchmark;
pub use layouts::load_dataset;
pub use layouts::ogb::{OgbGraph, load_ogb, load_ogb_graph};
pub use layouts::tables_layout::{
    EdgeTableEntry, NodeTableEntry, SplitTable, SplitTables, TableFeatures, TablesDescription,
};
pub use layouts::triples::{KnowledgeGraph, Triple, load_knowledge_graph};
pub use layouts::tu_dataset::load_tu_dataset;
pub use saved::graph::{
    MapOptions, MappedGraph, load_graph, map_graph, map_graph_with, save_graph,
};
pub use saved::topology::Topology;
pub use splits::link_split::{LinkPart, LinkSplit, Links, RandomLinkSplit};
pub use splits::node_split::{RandomNodeSplit, Share};
pub use table_writer::{write_edge_table, write_node_table};
pub use tables::{
    AttrType, Attributes, Builder, Csv, DOUBLE_ATTRS, Decoder, Delimiter, Duplicates, EdgeTable,
    Encoding, FLOAT_ATTRS, FeatureKind, FeaturePart, FeatureSpec, INT_ATTRS, IntBuckets, LABEL,
    LABEL_TEXT, NodeTable, ReadOptions, Slot, Source, TEXT_KEYS, TIMESTAMP, TableColumns, TextHash,
    TimeUnit, UnknownNodes, WEIGHT, class_names, list_attr, read_edges, read_edges_with,
    read_nodes, read_nodes_with, text_attr,
};
