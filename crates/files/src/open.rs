//! Opens regular files, and makes the errors of all readers.

use std::fs::{File, Metadata};
use std::path::Path;

use crate::DataError;
use crate::truncate::{cut, cut_quoted};

/// A [`DataError::Format`]; texts in quotes are cut, whatever file they came from.
pub fn format_error(path: &Path, message: impl Into<String>) -> DataError {
    DataError::Format { path: path.into(), message: cut_quoted(message.into()) }
}

/// A [`DataError::Io`].
pub fn io_error(path: &Path, source: std::io::Error) -> DataError {
    DataError::Io { path: path.into(), source }
}

/// An error of a reader: what a decompressor says is about the content.
pub fn read_error(path: &Path, e: std::io::Error) -> DataError {
    match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            format_error(path, "expected more data, found the end")
        }
        _ if e.get_ref().is_some() => {
            format_error(path, format!("expected intact data, found: {}", cut(&e.to_string())))
        }
        _ => io_error(path, e),
    }
}

/// Opens a regular file and gives its length. Anything else (a directory, a pipe that blocks, a device that never ends)
/// is refused, by what the opened file is, so that nothing else can take its place meanwhile.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] for what is no regular file.
pub fn open(path: &Path) -> Result<(File, u64), DataError> {
    let regular = |meta: &Metadata| {
        if meta.is_file() {
            return Ok(());
        }
        Err(format_error(
            path,
            format!("expected a regular file, found {}; copy its content to a file", kind(meta)),
        ))
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
