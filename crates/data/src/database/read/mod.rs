//! Reads databases: folders of RelBench, and CSV or Parquet files with a `schema.json`.

mod assemble;
mod convert;
mod description;
mod kinds;
mod labels;
mod open;
#[cfg(feature = "parquet")]
mod parquet_columns;
#[cfg(all(feature = "parquet", feature = "yaml"))]
mod relbench;
mod schema_json;
mod single_table;
pub(crate) mod suggest;
mod table_file;
