//! Reads data of DGL: CSV data sets and the chunked graph format.

mod chunked;
#[cfg(test)]
mod chunked_tests;
#[cfg(feature = "yaml")]
mod csv_columns;
#[cfg(feature = "yaml")]
mod csv_set;
#[cfg(all(test, feature = "yaml"))]
mod csv_tests;

pub use chunked::{ChunkedData, ChunkedDataset, ChunkedStructure, load_chunked, open_chunked};
#[cfg(feature = "yaml")]
pub use csv_set::load_dgl_csv;
