//! Checks that results can be written, before time is spent on computing them.

use std::path::Path;

use burn_gnn_files::internal::{AtomicFile, format_error, io_error};

use crate::failure::Failure;

/// Checks that a file can be written.
pub(crate) fn file(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        let why = "expected the name of a file, found a folder; add a name";
        return Err(format_error(path, why).into());
    }
    // The temporary file is removed when it is dropped.
    Ok(AtomicFile::create(path).map(drop).map_err(|e| io_error(path, e))?)
}

/// Checks that files can be written to a folder, which is created later if it does not exist.
pub(crate) fn folder(path: &Path) -> Result<(), Failure> {
    let mut existing = path;
    while !existing.exists() {
        existing = match existing.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
    }
    if !existing.is_dir() {
        let why = "expected a folder, found a file; choose another name";
        return Err(format_error(existing, why).into());
    }
    let probe = existing.join("burn-gnn");
    Ok(AtomicFile::create(probe).map(drop).map_err(|e| io_error(path, e))?)
}
