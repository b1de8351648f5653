//! Archives as folders.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Component, Path, PathBuf};

use crate::GraphError;
use crate::io::files::{cut, format_error, io_error, open};
use crate::io::zip_error;

/// Bytes that all files of an archive together may have; the largest set here has 10 GB.
const MOST: u64 = 64 << 30;

/// Unpacks a zip archive or a gzipped tar archive, told by its name, into a folder beside `into` that then becomes `into`; where
/// that is there already, into it, without what it has. Where an archive holds one folder and nothing else, that folder is taken.
///
/// # Errors
/// [`GraphError::Io`]; [`GraphError::Format`] for a damaged archive, or one with names that lead out of the folder, or with links.
pub(super) fn unpack(archive: &Path, into: &Path) -> Result<(), GraphError> {
    let parent = into.parent().unwrap_or(Path::new("."));
    let temp = tempfile::Builder::new().prefix(".unpack").tempdir_in(parent).map_err(|e| io_error(parent, e))?;
    if archive.extension().is_some_and(|e| e == "zip") {
        zip(archive, temp.path())?
    } else {
        tar(archive, temp.path())?
    }
    let entries = std::fs::read_dir(temp.path()).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|e| io_error(temp.path(), e))?;
    let inner = match entries.as_slice() {
        [only] if only.path().is_dir() => only.path(),
        _ => temp.path().to_owned(),
    };
    if !into.exists() {
        return std::fs::rename(&inner, into).map_err(|e| io_error(into, e));
    }
    // What is there already was put there by somebody, and stays.
    for entry in std::fs::read_dir(&inner).map_err(|e| io_error(&inner, e))? {
        let entry = entry.map_err(|e| io_error(&inner, e))?;
        let target = into.join(entry.file_name());
        if !target.exists() {
            std::fs::rename(entry.path(), &target).map_err(|e| io_error(&target, e))?;
        }
    }
    Ok(())
}

fn zip(archive: &Path, into: &Path) -> Result<(), GraphError> {
    let (file, _) = open(archive)?;
    let mut zip = ::zip::ZipArchive::new(BufReader::new(file)).map_err(|e| zip_error(archive, e))?;
    let mut left = MOST;
    for i in 0..zip.len() {
        let entry = zip.by_index(i).map_err(|e| zip_error(archive, e))?;
        let name = entry.name().map_err(|e| zip_error(archive, e))?.into_owned();
        let path = place(archive, into, Path::new(&name))?;
        if entry.is_symlink() {
            return Err(format_error(archive, format!("expected files and folders, found a link {:?}", cut(&name))));
        }
        if entry.is_dir() {
            std::fs::create_dir_all(&path).map_err(|e| io_error(&path, e))?;
        } else {
            write(archive, &path, entry, &mut left)?;
        }
    }
    Ok(())
}

fn tar(archive: &Path, into: &Path) -> Result<(), GraphError> {
    let damaged = |e: std::io::Error| format_error(archive, format!("expected a gzipped tar archive, found: {}", cut(&e.to_string())));
    let (file, _) = open(archive)?;
    let mut tar = ::tar::Archive::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(file)));
    let mut left = MOST;
    for entry in tar.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let path = place(archive, into, &name)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            std::fs::create_dir_all(&path).map_err(|e| io_error(&path, e))?;
        } else if kind.is_file() {
            write(archive, &path, entry, &mut left)?;
        } else if kind.is_symlink() || kind.is_hard_link() {
            return Err(format_error(archive, format!("expected files and folders, found a link {:?}", cut(&name.display().to_string()))));
        }
    }
    Ok(())
}

/// Where an entry goes.
fn place(archive: &Path, into: &Path, name: &Path) -> Result<PathBuf, GraphError> {
    let inside = name.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let text = name.to_string_lossy();
    if !inside || text.contains([':', '\\', '\0']) {
        return Err(format_error(archive, format!("expected names inside the folder, found {:?}", cut(&text))));
    }
    Ok(into.join(name))
}

fn write(archive: &Path, path: &Path, entry: impl Read, left: &mut u64) -> Result<(), GraphError> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|e| io_error(parent, e))?;
    }
    let mut file = File::create(path).map_err(|e| io_error(path, e))?;
    let copied = std::io::copy(&mut entry.take(*left + 1), &mut file).map_err(|e| match e.get_ref() {
        Some(_) => format_error(archive, format!("expected an intact archive, found: {}", cut(&e.to_string()))),
        None => io_error(path, e),
    })?;
    *left = left.checked_sub(copied).ok_or_else(|| format_error(archive, format!("expected at most {MOST} bytes, found more")))?;
    Ok(())
}
