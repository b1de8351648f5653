//! Opens and checks files: errors, limits on declared sizes, descriptions, archives.

pub(crate) mod checksum;
#[cfg(test)]
pub(crate) mod corrupt_file;
pub(crate) mod decompression_limit;
mod description;
mod errors;
mod limits;
mod progress;
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
mod zip_archive;

#[cfg(feature = "torch")]
pub(crate) use burn_gnn_files::internal::read_file;
pub(crate) use burn_gnn_files::internal::{
    ArrayHead, CountingReader, Cut, Hash, LOCK, MappedFile, Progress, TensorIndex, TensorInfo,
    TensorViews, cut, format_error, inside, io_error, open, read_bounded, read_error,
    remove_abandoned, reserve, tensor_header,
};
pub(crate) use burn_gnn_files::{NpyHead, create_dirs, lock_dir, sync_dir, write_atomic};

pub(crate) use description::{FormatVersion, MARK, check_version, read_json};
#[cfg(not(all(feature = "npz", feature = "rdf", feature = "zstd")))]
pub(crate) use errors::missing_feature;
pub(crate) use errors::{
    Expected, decoder_error, duplicate, setting, table_error, text_error, unknown_ntype,
    without_remedy,
};
pub(crate) use limits::{LIMIT, ids_below, node_count, referenced, same_count, within_limit};
pub(crate) use progress::{reading, reading_file};
#[cfg(any(feature = "download", feature = "npz", feature = "torch"))]
pub(crate) use zip_archive::{open_zip, zip_error};
