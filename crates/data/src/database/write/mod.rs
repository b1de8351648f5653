//! Writes databases in RelBench's layout, and single tables.

mod folder;
#[cfg(feature = "parquet")]
mod layout;
#[cfg(feature = "parquet")]
mod parquet_file;
mod single_table;
