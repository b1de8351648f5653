//! Files that features and readers share: opened with care, written whole, mapped, with the headers of their formats.
//!
//! Nothing of it is for users of this crate; `burn-gnn-data` exports what is.

mod atomic;
mod checksum;
mod mapped_file;
mod npy_header;
mod tensor_header;
mod tensor_views;

use std::fs::{File, Metadata};
use std::path::Path;

use crate::GraphError;
use crate::cut::{cut, cut_quoted};

pub use atomic::{
    AtomicFile, DirLock, LOCK, abandoned, builder, create_dirs, folder, lock_dir, locked, prefix, remove_abandoned, sync_dir, write_atomic,
};
pub use checksum::Hash;
pub use mapped_file::MappedFile;
pub use npy_header::{EntryType, NpyHead};
pub use tensor_header::tensor_header;
pub use tensor_views::{MAX_HEADER, TensorViews};

/// A [`GraphError::Format`]; texts in quotes are cut, whatever file they came from.
pub fn format_error(path: &Path, message: impl Into<String>) -> GraphError {
    GraphError::Format { path: path.into(), message: cut_quoted(message.into()) }
}

/// A [`GraphError::Io`].
pub fn io_error(path: &Path, source: std::io::Error) -> GraphError {
    GraphError::Io { path: path.into(), source }
}

/// An error of a reader: what a decompressor says is about the content.
pub fn read_error(path: &Path, e: std::io::Error) -> GraphError {
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => format_error(path, "expected more data, found the end"),
        _ if e.get_ref().is_some() => format_error(path, format!("expected intact data, found: {}", cut(&e.to_string()))),
        _ => io_error(path, e),
    }
}

/// Opens a regular file and gives its length. Anything else (a directory, a pipe that blocks, a device that never ends)
/// is refused, by what the opened file is, so that nothing else can take its place meanwhile.
///
/// # Errors
/// [`GraphError::Io`]; [`GraphError::Format`] for what is no regular file.
pub fn open(path: &Path) -> Result<(File, u64), GraphError> {
    let regular = |meta: &Metadata| {
        if meta.is_file() {
            return Ok(());
        }
        Err(format_error(path, format!("expected a regular file, found {}; copy its content to a file", kind(meta))))
    };
    // Before it is opened, since that alone has effects on some devices.
    regular(&std::fs::metadata(path).map_err(|e| io_error(path, e))?)?;
    let mut options = File::options();
    options.read(true);
    // Opening a pipe waits for a writer otherwise; a regular file is opened and read as without.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path).map_err(|e| io_error(path, e))?;
    let meta = file.metadata().map_err(|e| io_error(path, e))?;
    regular(&meta)?;
    Ok((file, meta.len()))
}

/// What there is in place of a regular file.
fn kind(meta: &Metadata) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let ty = meta.file_type();
        if ty.is_fifo() {
            return "a pipe";
        } else if ty.is_char_device() || ty.is_block_device() {
            return "a device";
        } else if ty.is_socket() {
            return "a socket";
        }
    }
    if meta.is_dir() { "a directory" } else { "something else" }
}
