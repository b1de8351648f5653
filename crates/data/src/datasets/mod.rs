//! Loads well-known data sets for node classification, and downloads them if necessary.
//!
//! [`Known::load`] reads the published files of a data set from the folder of a [`DataHome`]. With the cargo feature
//! `download` it first downloads missing files from the official address. The SHA-256 of a download must be the known
//! one. If none is known, the SHA-256 of the first download is recorded next to the file, and later downloads must match
//! it. [`karate_club`](crate::karate_club) and [`crates_graph`](crate::crates_graph) are built into the library.
//!
//! | data set | task | files | cargo feature |
//! | --- | --- | --- | --- |
//! | Cora, Citeseer, PubMed | topic of a paper | Planetoid: `ind.<name>.*` | |
//! | AIFB, MUTAG, BGS, AM | class of an entity, R-GCN | N-Triples and tables of labels | `rdf` |
//! | Reddit | community of a post | `.npz` | `npz` |
//! | ogbn-arxiv, ogbn-products, ogbn-mag | OGB | CSV | |
//!
//! ```no_run
//! use burn_gnn_data::datasets::{DataHome, Known};
//!
//! fn main() -> Result<(), burn_gnn_data::DataError> {
//!     let cora = Known::Cora.load()?; // $BURN_GNN_DATA/cora, or the cache folder of the system
//!     let mag = Known::OgbnMag.load_from(&DataHome::at("/data"))?; // /data/ogbn-mag
//!     Ok(())
//! }
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
mod remote_file;
#[cfg(test)]
mod sets_tests;
#[cfg(feature = "download")]
mod unpack;

pub use catalog::Known;
pub use data_home::DataHome;
#[cfg(feature = "download")]
pub use fetch::{Download, fetch};
pub use remote_file::{DatasetInfo, RemoteFile};
