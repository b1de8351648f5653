//! Parses the rows of tables into columns.

pub(crate) mod attributes;
pub(crate) mod columns;
mod common_rows;
pub(crate) mod csv;
mod csv_header;
pub(crate) mod field;
pub(crate) mod header;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod text_columns;
