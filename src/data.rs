//! Readers and writers of graphs and tables, published data sets, splits.
//!
//! The [chapter on data](https://github.com/burn-gnn/burn-gnn/blob/main/docs/data.md) describes every format. Readers
//! return a [`DataError`] that names the file, what was expected and what was found. Names without a link need the cargo
//! feature in brackets.
//!
//! | graphs from files | description |
//! | --- | --- |
//! | [`Builder`], [`read_nodes`], [`read_edges`] | tables: CSV, GraphLearn's format, Parquet (`parquet`) |
//! | [`Decoder`], [`Csv`], [`AttrType`], [`ReadOptions`] | columns of tables: ids, weights, labels, times, attributes |
//! | [`load_dataset`] | a folder with `metadata.json` or `tables.json`, as a [`Dataset`] |
//! | [`load_edge_list`], [`load_matrix_market`], `load_scipy_npz` (`npz`) | edge lists, sparse matrices |
//! | `load_dgl_csv` (`yaml`), [`load_chunked`], [`load_ogb`] | formats of DGL and OGB |
//! | [`load_knowledge_graph`] ([`Triple`]), `read_rdf` (`rdf`) | triples |
//!
//! | without files | description |
//! | --- | --- |
//! | [`karate_club`], [`crates_graph`] | graphs inside the library |
//! | [`datasets`] | published data sets (downloaded with the feature `download`) |
//!
//! | splits | of |
//! | --- | --- |
//! | [`Split`], [`RandomNodeSplit`] ([`Share`]) | nodes, into training, validation and test |
//! | [`RandomLinkSplit`] ([`LinkSplit`], [`Links`]) | edges, with negatives |
//!
//! | arrays and own formats | description |
//! | --- | --- |
//! | [`save_graph`], [`load_graph`], [`map_graph`], [`Topology`] | this library's format: read into memory, or mapped |
//! | [`read_npy`], [`write_npy`], `Npz` (`npz`), `read_torch` (`torch`) | arrays of NumPy and PyTorch |
//! | [`write_node_table`], [`write_edge_table`] | tables for other programs |
//! | [`write_atomic`], [`AtomicFile`] | files that are replaced atomically |

pub use burn_gnn_data::*;
