//! Names the columns that tables become in a graph.

/// Column of weights, `[rows]` f32.
pub const WEIGHT: &str = "weight";
/// Column of labels, `[rows]` i64.
pub const LABEL: &str = "label";
/// Texts of the labels, if labels are texts ([`Decoder::text_labels`](crate::Decoder::text_labels)).
pub const LABEL_TEXT: &str = "label_text";
/// Column of timestamps, `[rows]` i64.
pub const TIMESTAMP: &str = "timestamp";
/// Column of the float attributes, `[rows, floats]` f32, in the order of the attributes.
pub const FLOAT_ATTRS: &str = "float_attrs";
/// Column of the attributes of type [`AttrType::Double`](crate::AttrType::Double), `[rows, doubles]` f64, in the order of
/// the attributes.
pub const DOUBLE_ATTRS: &str = "double_attrs";
/// Column of the whole numbers and buckets, `[rows, ints]` i64, in the order of the attributes.
pub const INT_ATTRS: &str = "int_attrs";
/// Column of the keys of texts without buckets, `[rows, texts]` i64: Fingerprint64 modulo `2^63 - 1`.
pub const TEXT_KEYS: &str = "text_keys";
/// Name of the lists of the `i`-th multi-valued attribute, buckets or keys, in a table without a header. In a table with
/// one it is the name of the column ([`Decoder::list_names`](crate::Decoder::list_names)).
pub fn list_attr(i: usize) -> String {
    format!("list_attr_{i}")
}

/// Name of the texts of the `i`-th text attribute without buckets ([`Frame::text`](burn_gnn_graph::Frame::text)).
pub fn text_attr(i: usize) -> String {
    format!("text_attr_{i}")
}
