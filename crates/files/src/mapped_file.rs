//! Maps files into memory.

use std::fs::{File, TryLockError};
use std::ops::Deref;
use std::path::Path;
use std::time::{Duration, Instant};

use memmap2::Mmap;

use crate::DataError;
use crate::open::{io_error, open};

/// How long a file that is locked is asked for again.
const PATIENCE: Duration = Duration::from_millis(100);

/// The bytes of a file, which the system reads when they are asked for.
///
/// Nobody may change the file meanwhile: bytes that were checked may then be others, so no unsafe code relies on them,
/// and a byte behind the end of a file that was cut short ends the process (SIGBUS on Unix; Windows refuses to cut such
/// a file). A shared advisory lock ([`File::lock_shared`]) tells programs that lock files, where the file system has
/// locks. Writers of this library need none: they write another file and rename it, and what is mapped stays the old
/// one.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    /// Holds the lock; closed after the map is gone.
    _locked: Option<File>,
}

impl MappedFile {
    /// Maps a file as long as it is, and locks it.
    ///
    /// # Errors
    /// [`DataError::Io`], also for a file that a program has locked to write it; [`DataError::Format`] for what is no
    /// regular file.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::locked(path, open(path)?.0)
    }

    /// As [`open`](Self::open) without a lock, so that no file stays open: for tables of more files than a process may
    /// have open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_unlocked(path: &Path) -> Result<Self, DataError> {
        Ok(Self { map: map(path, &open(path)?.0)?, _locked: None })
    }

    /// As [`open`](Self::open), of a file that is open.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn locked(path: &Path, file: File) -> Result<Self, DataError> {
        let begun = Instant::now();
        let locked = loop {
            match file.try_lock_shared() {
                // A writer of this library holds its lock for a moment after it has renamed the file.
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(1))
                }
                other => break other,
            }
        };
        match locked {
            // File systems without locks have none to respect.
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
    // SAFETY: the map is read-only, and its length is that of the file. The documentation of everything that is mapped
    // asks that nobody changes the file, a lock tells others, and unsafe code relies on no byte of it.
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
    fn a_file_that_is_being_written_is_refused() {
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
        // Readers share; a writer that asks sees them until the last is gone.
        let readers = [MappedFile::open(&path).unwrap(), MappedFile::open(&path).unwrap()];
        assert!(readers.iter().all(|r| **r == *b"12345"));
        assert!(matches!(writer.try_lock(), Err(TryLockError::WouldBlock)));
        drop(readers);
        writer.try_lock().unwrap();
        assert!(matches!(MappedFile::open(dir.path()), Err(DataError::Format { .. })));
        assert!(matches!(MappedFile::open(&dir.path().join("none")), Err(DataError::Io { .. })));
    }
}
