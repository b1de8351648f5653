//! Reads text: files, blocks of lines and records, fields, numbers and times.

pub(crate) mod blocks;
#[cfg_attr(
    not(any(feature = "rdf", feature = "yaml")),
    allow(dead_code, reason = "read by formats that are features")
)]
pub(crate) mod csv_records;
pub(crate) mod decompress;
pub(crate) mod dialect;
pub(crate) mod encoding;
pub(crate) mod format;
pub(crate) mod parse_number;
pub(crate) mod source;
pub(crate) mod time;
