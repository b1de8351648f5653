//! Reads and writes graphs, and loads well-known data sets.
//!
//! The chapter on data of the book: <https://github.com/burn-gnn/burn-gnn/blob/main/docs/data.md>.
//!
//! | to read | function |
//! | --- | --- |
//! | a published data set by its name | [`datasets::Known`], [`karate_club`], [`crates_graph`] |
//! | a folder with a data set ([`Dataset`]) | [`load_dataset`], [`load_ogb`], `load_gnn_benchmark` |
//! | many graphs | [`load_tu_dataset`] |
//! | triples for link prediction | [`load_knowledge_graph`], [`load_triple_negatives`], [`load_inductive_triples`], with time steps [`load_temporal_triples`] |
//! | events in time | [`EventStream`], [`load_events`] |
//! | signals on the nodes of a graph | [`load_series`] |
//! | users, items and their interactions | [`load_interactions`] |
//! | a graph with links to predict | [`load_links`] |
//! | a graph file of another program | [`load_edge_list`], [`load_matrix_market`], [`load_node_link`], `load_graphml`, `read_rdf` |
//! | files of DGL | [`load_chunked`], `load_dgl_csv` |
//! | a database: tables with keys and times, and tasks | [`Database`] |
//! | tables: CSV, Parquet, GraphLearn's format | [`Builder`], [`read_nodes`], [`read_edges`] |
//! | arrays | [`read_npy`], `Npz`, `read_torch` |
//! | a graph that this library saved | [`load_graph`], [`map_graph`], [`Topology`] |
//!
//! [`save_graph`], [`write_node_table`], [`write_edge_table`] and [`write_npy`] write files. [`Split`] and
//! [`RandomLinkSplit`] split nodes and links.
//!
//! Files are not trusted. For any content, a reader returns a value or a [`DataError`] that names the file, the expected
//! and the found content. It does not panic, and its memory is limited by the size of the files.

#![forbid(unsafe_code)]

mod arrays;
mod columns;
mod database;
mod dataset;
pub mod datasets;
mod events;
mod files;
mod formats;
mod layouts;
mod saved;
mod splits;
mod table_writer;
mod tables;
#[cfg(test)]
mod tests;

pub use burn_gnn_files::{
    AtomicFile, DataError, DirLock, NpyHead, create_dirs, lock_dir, sync_dir, write_atomic,
};

pub use arrays::npy::{NpyArray, NpyValues, read_npy, write_npy};
#[cfg(feature = "torch")]
pub use arrays::torch::{NamedTensor, read_torch};
pub use columns::narrow::RoundedCount;
pub use database::column::{ColumnKind, ColumnValues, DatabaseColumn, ListColumn, ListValues};
pub use database::database::Database;
pub use database::graph::{DatabaseGraph, KeyCount, KeyEdges};
pub use database::inspect::{
    ColumnSummary, DatabaseSummary, ForeignKeySummary, PartSummary, TableSummary, TaskSummary,
};
pub use database::options::DatabaseOptions;
pub use database::protocol::Protocol;
pub use database::read::suggest::suggest_schema;
pub use database::references::References;
pub use database::table::{ALWAYS, DatabaseTable, ForeignKey, NEVER};
pub use database::task::{
    DatabaseTask, Destination, LATEST, Part, Targets, TaskKind, TaskRows, TaskType,
};
pub use database::window::condition::{Comparison, Condition, ConditionValue};
pub use database::window::declaration::{Aggregate, Threshold, WindowEntities, WindowTask};
pub use dataset::features::Features;
pub use dataset::graph_set::GraphSet;
pub use dataset::id_converter::{IdConverter, TypeIds};
pub use dataset::node_dataset::Dataset;
pub use dataset::split::Split;
pub use datasets::crates_graph::crates_graph;
pub use datasets::karate::karate_club;
pub use events::event_graph::{EventGraph, edge_ages};
pub use events::event_split::EventSplit;
pub use events::event_stream::EventStream;
pub use formats::attributed_graph::AttributeOptions;
pub use formats::edge_list::{EdgeListFormat, load_edge_list, read_edge_list};
#[cfg(feature = "graphml")]
pub use formats::graphml::{load_graphml, load_graphml_with};
pub use formats::matrix_market::{
    MatrixMarketOptions, load_matrix_market, load_matrix_market_with,
};
pub use formats::node_link::{load_node_link, load_node_link_with};
#[cfg(feature = "npz")]
pub use formats::npz::{Npz, load_scipy_npz, read_scipy_npz};
#[cfg(feature = "rdf")]
pub use formats::rdf::{RDF_NODE, RdfGraph, RdfOptions, RdfSyntax, read_rdf};
#[cfg(feature = "yaml")]
pub use layouts::dgl::load_dgl_csv;
pub use layouts::dgl::{ChunkedData, ChunkedDataset, ChunkedStructure, load_chunked, open_chunked};
pub use layouts::events_layout::{EventDataset, load_events};
#[cfg(feature = "npz")]
pub use layouts::gnn_benchmark::load_gnn_benchmark;
pub use layouts::interactions::{InteractionPart, Interactions, load_interactions};
pub use layouts::links::{LinkSet, NodePair, load_links};
pub use layouts::load_dataset;
pub use layouts::ogb::{OgbGraph, load_ogb, load_ogb_graph};
pub use layouts::series_layout::{NodeSeries, load_series};
pub use layouts::tables_layout::{
    EdgeTableEntry, NodeTableEntry, SplitTable, SplitTables, TableFeatures, TablesDescription,
};
pub use layouts::temporal_triples::{TemporalKnowledgeGraph, TimedTriple, load_temporal_triples};
pub use layouts::triples::{
    EntityNegatives, InductiveKnowledgeGraph, KnowledgeGraph, Triple, TripleNegatives,
    load_inductive_triples, load_knowledge_graph, load_triple_negatives,
};
pub use layouts::tu_dataset::load_tu_dataset;
pub use saved::graph::{
    MapOptions, MappedGraph, load_graph, map_graph, map_graph_with, save_graph,
};
pub use saved::topology::Topology;
pub use splits::inductive_split::InductiveLinkSplit;
pub use splits::link_parts::{LinkPart, LinkSplit, Links};
pub use splits::link_split::{LinkOrder, RandomLinkSplit};
pub use splits::node_split::{RandomNodeSplit, Share};
pub use table_writer::{write_edge_table, write_node_table};
pub use tables::{
    AttrType, Attributes, Builder, Csv, DOUBLE_ATTRS, Decoder, Delimiter, Duplicates, EdgeTable,
    Encoding, FLOAT_ATTRS, FeatureKind, FeaturePart, FeatureSpec, INT_ATTRS, IntBuckets, LABEL,
    LABEL_TEXT, NodeTable, ReadOptions, Slot, Source, TEXT_KEYS, TIMESTAMP, TableColumns, TextHash,
    TimeUnit, UnknownNodes, WEIGHT, class_names, format_time, list_attr, parse_time, read_edges,
    read_edges_with, read_nodes, read_nodes_with, text_attr,
};
