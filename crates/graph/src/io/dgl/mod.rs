//! Data of DGL: its CSV data sets and its chunked graph format.

mod chunked;
#[cfg(test)]
mod chunked_tests;
mod csv_columns;
mod csv_set;
#[cfg(test)]
mod csv_tests;

pub use chunked::{ChunkedData, ChunkedGraph, ChunkedStructure, load_chunked, open_chunked};
pub use csv_set::{GraphSet, load_dgl_csv};
