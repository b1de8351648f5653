//! Databases: tables with keys and times, and tasks on them. `Database` documents the rules for times, missing values, kinds
//! and keys.

pub(crate) mod column;
#[expect(clippy::module_inception, reason = "the file of the type `Database`")]
pub(crate) mod database;
pub(crate) mod graph;
pub(crate) mod inspect;
#[cfg_attr(
    not(all(feature = "parquet", feature = "yaml")),
    allow(dead_code, reason = "read by formats that are features")
)]
pub(crate) mod manifest;
pub(crate) mod options;
pub(crate) mod protocol;
pub(crate) mod read;
pub(crate) mod references;
pub(crate) mod table;
pub(crate) mod task;
#[cfg(test)]
mod tests;
pub(crate) mod time_order;
pub(crate) mod window;
mod write;
