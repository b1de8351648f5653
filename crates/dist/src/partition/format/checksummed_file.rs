//! Writes and reads files whose names and checksums are in the metadata file.

use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use burn_gnn_data::AtomicFile;
use burn_gnn_files::DataError;
use burn_gnn_files::internal::cut;
use burn_gnn_files::internal::read_file;
use twox_hash::XxHash3_64;

use crate::error::DistError;

/// Writes the content of `path` to its [`pending_path`] and forces it to disk; returns the checksum of the content.
pub(crate) fn write_summed(
    path: &Path,
    content: impl FnOnce(&mut ChecksumWriter) -> io::Result<()>,
) -> Result<String, DistError> {
    let write = || {
        let mut w = ChecksumWriter {
            inner: AtomicFile::create(path)?,
            hash: XxHash3_64::new(),
            written: 0,
        };
        content(&mut w)?;
        let sum = text(w.hash.finish());
        w.inner.commit_as(&pending_path(path, &sum))?;
        Ok(sum)
    };
    write().map_err(DistError::io(path))
}

/// The name of a new file, with its checksum in it, until the metadata that refers to this checksum is written and the
/// old file can be replaced.
pub(crate) fn pending_path(path: &Path, sum: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let end = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{}.{end}", sum.trim_start_matches("xxh3:")))
}

/// Whether a text has the form of a checksum of [`write_summed`].
pub(crate) fn is_sum(sum: &str) -> bool {
    sum.strip_prefix("xxh3:")
        .is_some_and(|h| h.len() == 16 && h.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Writer that counts and hashes the bytes written.
pub(crate) struct ChecksumWriter {
    inner: AtomicFile,
    hash: XxHash3_64,
    pub(crate) written: u64,
}

impl Write for ChecksumWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(bytes)?;
        self.hash.write(&bytes[..n]);
        self.written += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Formats a checksum for the metadata.
pub(crate) fn text(hash: u64) -> String {
    format!("xxh3:{hash:016x}")
}

/// Reads a file that the metadata names, without comparing its checksum.
pub(crate) fn read_summed(
    json: &Path,
    name: &str,
    sum: &str,
) -> Result<(PathBuf, Vec<u8>), DistError> {
    let path = inside(json, name)?;
    // The file still has its pending name if a write was killed before the final rename.
    let new = pending_path(&path, sum);
    if is_sum(sum) && new.try_exists().map_err(DistError::io(&new))? {
        match read_file(&new) {
            // Another process may have renamed it since.
            Err(DataError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            read => return Ok((new, read.map_err(DistError::of_file)?)),
        }
    }
    let bytes = read_file(&path).map_err(DistError::of_file)?;
    Ok((path, bytes))
}

/// Returns an error if the bytes do not have the expected checksum.
pub(crate) fn check_sum(path: &Path, bytes: &[u8], expected: &str) -> Result<(), DistError> {
    let found = text(XxHash3_64::oneshot(bytes));
    if found == expected {
        return Ok(());
    }
    Err(DistError::Checksum { path: path.into(), expected: cut(expected), found })
}

/// The path of a file that the metadata names. A name that leads out of the folder is an error.
pub(crate) fn inside(json: &Path, name: &str) -> Result<PathBuf, DistError> {
    let relative = Path::new(name);
    if name.is_empty() || !relative.components().all(|c| matches!(c, Component::Normal(_))) {
        return Err(DistError::format(
            json,
            format!("file name {name:?} must be relative and stay inside the folder"),
        ));
    }
    Ok(json.parent().unwrap_or(Path::new("")).join(relative))
}
