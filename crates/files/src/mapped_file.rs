//! Maps files into memory, with a shared advisory lock.

use std::fs::{File, TryLockError};
use std::ops::Deref;
use std::path::Path;
use std::time::{Duration, Instant};

use memmap2::Mmap;

use crate::error::DataError;
use crate::open::{io_error, open};

/// How long a lock is retried.
const PATIENCE: Duration = Duration::from_millis(100);

/// A file mapped into memory. The system reads its pages on first access.
///
/// No process may change the file while it is mapped. Bytes that were validated may change, so no unsafe code relies on
/// them. Reading past the end of a file that was truncated ends the process (SIGBUS on Unix; Windows does not truncate
/// mapped files). A shared advisory lock ([`File::lock_shared`]) keeps away programs that lock files before they write
/// them, on file systems with locks. Writers of this library write another file and rename it, so a mapping stays
/// valid.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    /// Holds the lock; closed after the map is gone.
    _locked: Option<File>,
}

impl MappedFile {
    /// Maps the whole file and locks it.
    ///
    /// # Errors
    /// [`DataError::Io`], also if another program holds an exclusive lock; [`DataError::Format`] if `path` is not a
    /// regular file.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::locked(path, open(path)?.0)
    }

    /// [`open`](Self::open) without a lock. The file is closed after it is mapped, so a table may have more files than a
    /// process may have open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_unlocked(path: &Path) -> Result<Self, DataError> {
        Ok(Self { map: map(path, &open(path)?.0)?, _locked: None })
    }

    /// [`open`](Self::open) for a file that is already open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn locked(path: &Path, file: File) -> Result<Self, DataError> {
        let begun = Instant::now();
        let locked = loop {
            match file.try_lock_shared() {
                // A writer of this library holds its lock until shortly after the rename.
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1))
                }
                other => break other,
            }
        };
        match locked {
            // The file system has no locks.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another program has locked the file to write it; open it when that program is done";
                return Err(io_error(
                    path,
                    std::io::Error::new(std::io::ErrorKind::ResourceBusy, why),
                ));
            }
        }
        Ok(Self { map: map(path, &file)?, _locked: Some(file) })
    }
}

#[expect(unsafe_code, reason = "maps a file")]
fn map(path: &Path, file: &File) -> Result<Mmap, DataError> {
    // SAFETY: the map is read-only and as long as the file. The documentation of every mapped type requires that no
    // process changes the file, a lock keeps other programs away, and no unsafe code relies on its bytes.
    unsafe { Mmap::map(file) }.map_err(|source| io_error(path, source))
}

impl Deref for MappedFile {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_an_exclusive_lock_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        let writer = File::options().write(true).open(&path).unwrap();
        if writer.try_lock().is_err() {
            return println!("skipped: the file system has no locks");
        }
        let e = MappedFile::open(&path).unwrap_err();
        assert!(
            matches!(&e, DataError::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy),
            "{e}"
        );
        assert_eq!(&*MappedFile::open_unlocked(&path).unwrap(), b"12345");
        writer.unlock().unwrap();
        // Readers share the lock. A writer gets it after the last reader is dropped.
        let readers = [MappedFile::open(&path).unwrap(), MappedFile::open(&path).unwrap()];
        assert!(readers.iter().all(|r| **r == *b"12345"));
        assert!(matches!(writer.try_lock(), Err(TryLockError::WouldBlock)));
        drop(readers);
        writer.try_lock().unwrap();
        assert!(matches!(MappedFile::open(dir.path()), Err(DataError::Format { .. })));
        assert!(matches!(MappedFile::open(&dir.path().join("none")), Err(DataError::Io { .. })));
    }
}
