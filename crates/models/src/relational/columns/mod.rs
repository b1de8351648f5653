//! Encoders of tables: statistics, input, module.

pub(crate) mod column_encoding;
pub(crate) mod encoder_config;
pub(crate) mod table_encoder;
pub(crate) mod table_rows;
