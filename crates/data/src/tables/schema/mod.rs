//! Describes tables: their columns, the types of their attributes, and options of readers.

pub(crate) mod attr_type;
pub(crate) mod column_names;
pub(crate) mod csv_options;
pub(crate) mod decoder;
pub(crate) mod feature_spec;
pub(crate) mod hash;
pub(crate) mod read_options;
