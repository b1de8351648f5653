//! Opens, maps, validates and writes files for the other crates of `burn-gnn`; defines [`DataError`].
//!
//! `burn-gnn-data` re-exports the public items.

#![deny(unsafe_code)]

mod atomic;
mod checksum;
mod counting_reader;
mod error;
mod half_rows;
mod mapped_file;
mod npy_header;
mod open;
mod progress;
mod tensor_header;
mod tensor_index;
mod tensor_views;
mod truncate;

pub use atomic::{AtomicFile, DirLock, create_dirs, lock_dir, sync_dir, write_atomic};
pub use error::DataError;
pub use npy_header::NpyHead;

/// Shared by the other crates of this library; not part of the public API.
#[doc(hidden)]
pub mod internal {
    pub use crate::atomic::{AtomicFile, DirLock, create_dirs, lock_dir, sync_dir, write_atomic};
    pub use crate::atomic::{LOCK, abandoned, builder, folder, locked, prefix, remove_abandoned};
    pub use crate::checksum::Hash;
    pub use crate::counting_reader::CountingReader;
    pub use crate::error::DataError;
    pub use crate::half_rows::widen_f16;
    pub use crate::mapped_file::MappedFile;
    pub use crate::npy_header::NpyHead;
    pub use crate::npy_header::{ArrayHead, EntryType};
    pub use crate::open::{
        format_error, inside, io_error, open, open_with, read_bounded, read_error, read_file,
        reserve,
    };
    pub use crate::progress::Progress;
    pub use crate::tensor_header::tensor_header;
    pub use crate::tensor_index::{TensorIndex, TensorInfo};
    pub use crate::tensor_views::TensorViews;
    pub use crate::truncate::{Cut, cut, cut_quoted};
}
