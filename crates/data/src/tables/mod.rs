//! Reads tab-separated tables of GraphLearn, and CSV and Parquet files by the same interface.
//!
//! The first line of a table of GraphLearn lists the columns as `name:type`; each other line is a row. Names are free:
//! only the order, the number and the types of the columns are compared with the [`Decoder`]. There are no quotes, no
//! escapes, no comments and no nulls. Lines end with LF or CRLF. Each row is read once or is an error with file, line and
//! column, where GraphLearn drops or repeats invalid rows.

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
pub use text::time::{TimeUnit, format_time, parse_time};
