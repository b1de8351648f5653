//! Unpacks zip and gzipped tar archives.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Component, Path};

use burn_gnn_files::DataError;
use burn_gnn_files::DirLock;
use burn_gnn_files::internal::folder;
use tempfile::TempDir;

use crate::files::{cut, format_error, io_error, lock_dir, open_zip, sync_dir, zip_error};

/// Bytes that each entry counts in addition to its content, so that the number of empty files is limited, too.
const ENTRY: u64 = 512;

/// Unpacks a zip archive (`.zip`) or a gzipped tar archive (any other name) into the folder `into`.
///
/// The archive is unpacked into a temporary folder next to `into`, which is then renamed. If `into` exists, entries that
/// it does not have are renamed into it. If the archive contains a single folder, the content of that folder is used.
/// Every file and folder in `into` is complete from the moment it appears, also if several processes unpack. `unpacked`
/// is called before the rename; the caller may remove the archive there, because it is not needed any more.
///
/// # Errors
/// * [`DataError::Io`] if files cannot be read or written.
/// * [`DataError::Format`] for a damaged archive, for more than `most` bytes, for names outside the folder, and for
///   links.
pub(super) fn unpack(
    file: &File,
    archive: &Path,
    into: &Path,
    most: u64,
    unpacked: impl FnOnce(),
) -> Result<(), DataError> {
    let parent = folder(into);
    let (temp, _lock) = temporary(into).map_err(|e| io_error(parent, e))?;
    // A subfolder, because the lock file of the temporary folder must not become a file of the data set.
    let content = temp.path().join("content");
    std::fs::create_dir(&content).map_err(|e| io_error(&content, e))?;
    let mut file = file;
    file.rewind().map_err(|e| io_error(archive, e))?;
    let mut out = Unpacked { archive, into: &content, left: most, most };
    if archive.extension().is_some_and(|e| e == "zip") {
        zip(file, &mut out)?
    } else {
        tar(file, &mut out)?
    }
    sync_folders(&content).map_err(|e| io_error(&content, e))?;
    let entries = std::fs::read_dir(&content)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| io_error(&content, e))?;
    let inner = match entries.as_slice() {
        [only] if only.path().is_dir() => only.path(),
        _ => content,
    };
    unpacked();
    // Existing files stay: they may be the user's.
    if !appear(&inner, into)? {
        for entry in std::fs::read_dir(&inner).map_err(|e| io_error(&inner, e))? {
            let entry = entry.map_err(|e| io_error(&inner, e))?;
            appear(&entry.path(), &into.join(entry.file_name()))?;
        }
    }
    sync_dir(into).and_then(|()| sync_dir(parent)).map_err(|e| io_error(into, e))
}

/// Syncs a folder and its subfolders to disk, the innermost first. Links are not followed.
fn sync_folders(dir: &Path) -> std::io::Result<()> {
    let (mut folders, mut next) = (vec![dir.to_owned()], 0);
    while next < folders.len() {
        for entry in std::fs::read_dir(&folders[next])? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
        next += 1;
    }
    folders.iter().rev().try_for_each(sync_dir)
}

/// Renames a file or folder. Returns `false` if the target exists, also if another process has just created it.
fn appear(from: &Path, to: &Path) -> Result<bool, DataError> {
    if to.exists() {
        return Ok(false);
    }
    match std::fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(_) if to.exists() => Ok(false),
        Err(e) => Err(io_error(to, e)),
    }
}

/// Creates a temporary folder next to `into` and locks it. Removes unlocked ones, which are of killed processes.
fn temporary(into: &Path) -> std::io::Result<(TempDir, Option<DirLock>)> {
    let prefix = format!(".{}.unpack", into.file_name().unwrap_or_default().to_string_lossy());
    for entry in std::fs::read_dir(folder(into))?.flatten() {
        let left = entry.file_name().to_str().is_some_and(|n| n.starts_with(&prefix))
            && entry.file_type().is_ok_and(|t| t.is_dir());
        if left
            && let Ok(Some(lock)) = lock_dir(entry.path())
            && lock.is_exclusive()
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    loop {
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(folder(into))?;
        // Another process may remove the folder before it is locked. Then the next iteration creates another one.
        match lock_dir(dir.path()) {
            Ok(Some(lock)) if dir.path().exists() => return Ok((dir, Some(lock))),
            Err(e) if dir.path().exists() => return Err(e),
            _ => {}
        }
    }
}

fn zip(file: &File, out: &mut Unpacked<'_>) -> Result<(), DataError> {
    let archive = out.archive;
    let mut zip = open_zip(archive, BufReader::new(file))?;
    for i in 0..zip.len() {
        let entry = zip.by_index(i).map_err(|e| zip_error(archive, e))?;
        out.take(ENTRY)?;
        let name = entry.name().map_err(|e| zip_error(archive, e))?.into_owned();
        let kind = match (entry.is_symlink(), entry.is_dir()) {
            (true, _) => EntryKind::Link,
            (_, true) => EntryKind::Folder,
            _ => EntryKind::File,
        };
        out.put(Path::new(&name), kind, entry)?;
    }
    Ok(())
}

fn tar(file: &File, out: &mut Unpacked<'_>) -> Result<(), DataError> {
    let archive = out.archive;
    let damaged = |e: std::io::Error| {
        format_error(
            archive,
            format!("expected a gzipped tar archive, found: {}", cut(&e.to_string())),
        )
    };
    let mut tar = ::tar::Archive::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(file)));
    for entry in tar.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        out.take(ENTRY)?;
        let name = entry.path().map_err(damaged)?.into_owned();
        let kind = match entry.header().entry_type() {
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_symlink() || kind.is_hard_link() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        out.put(&name, kind, entry)?;
    }
    Ok(())
}

enum EntryKind {
    Folder,
    File,
    Link,
    /// Skipped.
    Other,
}

/// Writes entries of an archive.
struct Unpacked<'a> {
    archive: &'a Path,
    into: &'a Path,
    /// Remaining bytes of `most`.
    left: u64,
    most: u64,
}

impl Unpacked<'_> {
    fn wrong(&self, why: String) -> DataError {
        format_error(self.archive, why)
    }
    fn take(&mut self, bytes: u64) -> Result<(), DataError> {
        let left = self.left.checked_sub(bytes);
        let more = || {
            self.wrong(format!(
                "expected at most {} unpacked bytes, a few times the size of the published data set, found more",
                self.most
            ))
        };
        self.left = left.ok_or_else(more)?;
        Ok(())
    }
    fn put(&mut self, name: &Path, kind: EntryKind, content: impl Read) -> Result<(), DataError> {
        let inside =
            name.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        let text = name.to_string_lossy();
        if !inside || text.contains([':', '\\', '\0']) {
            return Err(
                self.wrong(format!("expected names inside the folder, found {:?}", cut(&text)))
            );
        }
        let path = self.into.join(name);
        match kind {
            EntryKind::Folder => std::fs::create_dir_all(&path).map_err(|e| io_error(&path, e)),
            EntryKind::File => self.write(&path, content),
            EntryKind::Link => {
                Err(self
                    .wrong(format!("expected files and folders, found a link {:?}", cut(&text))))
            }
            EntryKind::Other => Ok(()),
        }
    }
    fn write(&mut self, path: &Path, content: impl Read) -> Result<(), DataError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|e| io_error(parent, e))?;
        }
        // The folder is new, so an existing file means that the archive contains the name twice.
        let mut file = File::create_new(path).map_err(|e| io_error(path, e))?;
        let copied = std::io::copy(&mut content.take(self.left.saturating_add(1)), &mut file);
        let copied = copied.map_err(|e| match e.get_ref() {
            Some(_) => {
                self.wrong(format!("expected an intact archive, found: {}", cut(&e.to_string())))
            }
            None => io_error(path, e),
        })?;
        self.take(copied)?;
        file.sync_all().map_err(|e| io_error(path, e))
    }
}
