//! Reads tab-separated tables of GraphLearn, and CSV and Parquet files by the same interface.
//!
//! The first line names the columns, `name:type` each, the others hold one row each. Names are free: only order, number
//! and type of columns are compared with what the [`Decoder`] expects. There is no quoting, no escape, no comment and
//! no null. Lines end with LF or CRLF. Every row is either read, once, or an error: where GraphLearn drops or repeats a
//! bad row, these readers name file, line and column.

mod builder;
mod numbers;
mod read;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;

pub use builder::Builder;
pub use rows::attributes::Attributes;
pub use rows::columns::{TableColumns, class_names};
pub use schema::attr_type::AttrType;
pub use schema::column_names::{
    DOUBLE_ATTRS, FLOAT_ATTRS, INT_ATTRS, LABEL, LABEL_TEXT, TEXT_KEYS, TIMESTAMP, WEIGHT,
    list_attr, text_attr,
};
pub use schema::csv_options::Csv;
pub use schema::decoder::{Decoder, Delimiter, Slot};
pub use schema::feature_spec::{FeatureKind, FeaturePart, FeatureSpec};
pub use schema::hash::{IntBuckets, TextHash};
pub use schema::read_options::{Duplicates, ReadOptions, UnknownNodes};
pub use table::{EdgeTable, NodeTable, read_edges, read_edges_with, read_nodes, read_nodes_with};
pub use text::encoding::Encoding;
pub use text::source::Source;
pub use text::time::TimeUnit;
