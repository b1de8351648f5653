//! Reads tab-separated tables of GraphLearn, and CSV and Parquet files by the same interface.
//!
//! The first line names the columns, `name:type` each, the others hold one row each. Names are free: only order, number
//! and type of columns are compared with what the [`Decoder`] expects. There is no quoting, no escape, no comment and
//! no null. Lines end with LF or CRLF. Every row is either read, once, or an error: where GraphLearn drops or repeats a
//! bad row, these readers name file, line and column.

mod attr_type;
mod attributes;
mod blocks;
mod builder;
mod columns;
mod csv;
#[cfg_attr(
    not(any(feature = "rdf", feature = "yaml")),
    allow(dead_code, reason = "read by formats that are features")
)]
mod csv_text;
mod decoder;
mod dialect;
mod encoding;
mod feature_spec;
mod hash;
mod header;
mod numbers;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod parse_number;
mod read;
mod source;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text_format;
mod time;

pub use attr_type::AttrType;
pub use attributes::Attributes;
pub(crate) use blocks::{Blocks, lines, parse_blocks, text_of};
pub use builder::{
    Builder, DOUBLE_ATTRS, FLOAT_ATTRS, INT_ATTRS, LABEL, LABEL_TEXT, TEXT_KEYS, TIMESTAMP, WEIGHT,
    list_attr, text_attr,
};
pub(crate) use columns::append_ids;
pub use columns::{TableColumns, class_names};
pub use csv::Csv;
#[cfg(any(feature = "rdf", feature = "yaml"))]
pub(crate) use csv::joined;
#[cfg(any(feature = "rdf", feature = "yaml"))]
pub(crate) use csv_text::CsvFile;
pub use decoder::{Decoder, Delimiter, Slot};
pub use encoding::Encoding;
pub use feature_spec::{FeatureKind, FeaturePart, FeatureSpec};
pub use hash::{IntBuckets, TextHash};
pub use options::{Duplicates, ReadOptions, UnknownNodes};
pub(crate) use parse_number::{leading_f32, parse_f32, parse_f64, parse_i64};
pub use source::Source;
pub(crate) use table::resolve;
pub use table::{EdgeTable, NodeTable, read_edges, read_edges_with, read_nodes, read_nodes_with};
pub use time::TimeUnit;
