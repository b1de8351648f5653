//! The files of a partitioned graph: metadata, names, checksums and element types.

pub(crate) mod checksummed_file;
pub(crate) mod dtypes;
pub(crate) mod metadata;
pub(crate) mod owner_map;
