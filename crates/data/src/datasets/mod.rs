//! Loads well-known data sets, each by one call.
//!
//! [`Known::load`] looks into the folder of a [`DataHome`] and reads the published files there; what is not there is
//! fetched first, with the feature `download`, from the official home of the set; its SHA-256 must be the known one or,
//! where none is known, that of the first download, which is recorded beside it. [`karate_club`](crate::karate_club)
//! and [`crates_graph`](crate::crates_graph) are inside the library.
//!
//! | set | task | files | feature |
//! | --- | --- | --- | --- |
//! | Cora, Citeseer, PubMed | topic of a paper | Planetoid: `ind.<name>.*` | |
//! | AIFB, MUTAG, BGS, AM | class of an entity, R-GCN | N-Triples and tables of labels | `rdf` |
//! | Reddit | community of a post | `.npz` | `npz` |
//! | ogbn-arxiv, ogbn-products, ogbn-mag | OGB | CSV | |
//!
//! ```no_run
//! use burn_gnn_data::datasets::{DataHome, Known};
//! let cora = Known::Cora.load()?; // $BURN_GNN_DATA/cora, or the cache folder of the system
//! let mag = Known::OgbnMag.load_from(&DataHome::at("/data"))?; // /data/ogbn-mag
//! # Ok::<(), burn_gnn_data::DataError>(())
//! ```

mod catalog;
pub(crate) mod crates_graph;
mod data_home;
#[cfg(feature = "download")]
mod fetch;
#[cfg(all(test, feature = "download"))]
mod fetch_tests;
pub(crate) mod karate;
mod planetoid;
#[cfg(test)]
mod planetoid_tests;
#[cfg(feature = "rdf")]
mod rdf_datasets;
#[cfg(feature = "npz")]
mod reddit;
#[cfg(test)]
mod sets_tests;
#[cfg(feature = "download")]
mod unpack;

pub use catalog::{DatasetInfo, Known, RemoteFile};
pub use data_home::DataHome;
#[cfg(feature = "download")]
pub use fetch::{Download, fetch};
