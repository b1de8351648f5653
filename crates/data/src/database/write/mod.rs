//! Writes databases in RelBench's layout.

mod folder;
#[cfg(feature = "parquet")]
mod layout;
#[cfg(feature = "parquet")]
mod parquet_file;
