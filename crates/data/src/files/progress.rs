//! Progress bars of readers.

use std::path::Path;

use burn_gnn_files::internal::{Progress, cut};

/// Files of at least so many bytes get a progress bar.
const LONG: u64 = 64 << 20;

/// Progress bar for reading `len` bytes, labelled with `path`. Nothing is drawn for short files or if `draw` is false.
pub(crate) fn reading(draw: bool, path: &Path, len: u64) -> Progress {
    let what = format!("reading {}", cut(&path.display().to_string()));
    Progress::bytes(draw && len >= LONG, &what, len)
}

/// [`reading`] for a single file.
pub(crate) fn reading_file(draw: bool, path: &Path) -> Progress {
    reading(draw, path, std::fs::metadata(path).map_or(0, |m| m.len()))
}
