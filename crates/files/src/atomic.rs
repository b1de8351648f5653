//! Writes files atomically: complete or not at all.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::DataError;
use crate::open::io_error;

/// Part of a temporary name, between the name of the file and six random characters.
const MARK: &str = ".tmp";
/// Random characters of a temporary name.
const RANDOM: usize = 6;

/// Writes a file under a temporary name in the same folder, syncs it, and renames it to `path`.
///
/// A reader sees the old or the new content, never a part. [`AtomicFile`] documents what remains after a killed process
/// or a power failure.
///
/// ```
/// # use std::io::Write;
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("counts.json");
/// burn_gnn_files::write_atomic(&path, |w| w.write_all(b"[1, 2]"))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"[1, 2]");
/// # Ok::<(), burn_gnn_files::DataError>(())
/// ```
///
/// # Errors
/// [`DataError::Io`] with `path` if the folder is not writable, if `content` fails, or if the rename fails. The temporary
/// file is removed.
pub fn write_atomic(
    path: impl AsRef<Path>,
    content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), DataError> {
    let path = path.as_ref();
    let write = || {
        let mut file = AtomicFile::create(path)?;
        content(&mut file)?;
        file.commit()
    };
    write().map_err(|e| io_error(path, e))
}

/// A file that is written under a temporary name and renamed by [`commit`](Self::commit).
///
/// * The temporary file is `.<name>.tmp` and six random characters, in the folder of the file. It is created
///   exclusively and never through a symbolic link. Dropping the value without a commit removes it.
/// * [`commit`](Self::commit) syncs the content, renames the file, then syncs the folder. After a crash or a power
///   failure, the name refers to the old or to the new content. If several writers commit the same name, the last one
///   wins.
/// * A killed process leaves its temporary file. The next writer of the same name removes it. Each writer locks its
///   temporary file, which distinguishes those of running processes (on file systems with locks; elsewhere temporary
///   files of killed processes remain).
///
/// The folder must exist. Permissions are those of any new file.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    temp: tempfile::TempPath,
    path: PathBuf,
}

impl AtomicFile {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// The folder does not exist or is not writable, or `path` has no file name.
    pub fn create(path: impl Into<PathBuf>) -> std::io::Result<Self> {
        let path = path.into();
        let prefix = prefix(&path)?;
        let dir = folder(&path);
        if matches!(dir.try_exists(), Ok(false)) {
            let message = format!("there is no folder `{}`; create it first", dir.display());
            return Err(std::io::Error::new(std::io::ErrorKind::NotFound, message));
        }
        remove_abandoned(dir, &prefix);
        let (file, temp) = locked(|| builder(&prefix).tempfile_in(dir))?.into_parts();
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file), temp, path })
    }

    /// The file, for writes by position. Do not combine them with [`Write`], which is buffered.
    pub fn by_position(&self) -> &File {
        self.file.get_ref()
    }

    /// Replaces bytes that were already written, from `at` on. Later writes append to the end.
    pub fn overwrite(&mut self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Syncs the file and renames it to its final name.
    ///
    /// # Errors
    /// Flushing, syncing or renaming the file failed, and the temporary file is removed; or syncing the folder failed,
    /// after the rename.
    pub fn commit(self) -> std::io::Result<()> {
        let path = self.path.clone();
        self.commit_as(&path)
    }

    /// [`commit`](Self::commit) under another name in the same folder.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_as(mut self, path: &Path) -> std::io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        self.temp.persist(path).map_err(|e| e.error)?;
        // The file is complete: readers that map it now must not find a lock.
        let _ = self.file.get_ref().unlock();
        sync_dir(folder(path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Syncs a folder, so that creations, renames and removals in it survive a power failure. Does nothing on systems and
/// file systems that do not sync folders.
///
/// # Errors
/// The system reports a failed sync.
pub fn sync_dir(dir: impl AsRef<Path>) -> std::io::Result<()> {
    use std::io::ErrorKind::{InvalidInput, Unsupported};
    // A folder that is writable but not readable cannot be opened; on Windows no folder can.
    let Ok(dir) = File::open(dir) else { return Ok(()) };
    match dir.sync_all() {
        Err(e) if cfg!(unix) && !matches!(e.kind(), InvalidInput | Unsupported) => Err(e),
        _ => Ok(()),
    }
}

/// Creates a folder and its missing parents and syncs them, so that files which [`AtomicFile`] writes into it survive a
/// power failure.
///
/// # Errors
/// A folder cannot be created, or another kind of file has its name.
pub fn create_dirs(dir: impl AsRef<Path>) -> std::io::Result<()> {
    use std::io::ErrorKind::NotFound;
    let dir = dir.as_ref();
    let made = match std::fs::create_dir(dir) {
        Err(e) if e.kind() == NotFound && dir.parent().is_some() => {
            create_dirs(folder(dir))?;
            std::fs::create_dir(dir)
        }
        made => made,
    };
    match made {
        // Another process may have created it in the meantime. Systems report different errors for an existing folder
        // (read-only file systems, mount points).
        Err(_) if dir.is_dir() => Ok(()),
        made => made.and_then(|()| sync_dir(folder(dir))),
    }
}

/// Name of the file that [`lock_dir`] locks. Readers of all files of a folder skip it.
pub const LOCK: &str = ".lock";

/// Locks a folder whose files belong together against other writers, in this process and in others. Returns `None` if
/// another writer holds the lock.
///
/// The lock is on a file `.lock` in the folder, since network file systems share locks of files between machines, but
/// not locks of folders. Dropping the [`DirLock`] removes the file. If a process is killed, its lock ends, and the next
/// writer reuses the file.
///
/// On file systems without locks and in read-only folders, every caller gets a lock that is not
/// [exclusive](DirLock::is_exclusive).
///
/// ```
/// use burn_gnn_files::lock_dir;
/// # let dir = tempfile::tempdir().unwrap();
/// let lock = lock_dir(&dir)?.expect("no other writer");
/// assert!(!lock.is_exclusive() || lock_dir(&dir)?.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The folder does not exist, or `.lock` in it is not a regular file.
pub fn lock_dir(dir: impl AsRef<Path>) -> std::io::Result<Option<DirLock>> {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let dir = dir.as_ref();
    if !std::fs::metadata(dir)?.is_dir() {
        return Err(NotADirectory.into());
    }
    let path = dir.join(LOCK);
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NOFOLLOW | libc::O_NONBLOCK,
    );
    loop {
        let opened = match options.clone().write(true).create(true).truncate(false).open(&path) {
            // The file belongs to another user and can be locked for reading, or the folder is read-only.
            Err(e) if matches!(e.kind(), PermissionDenied | ReadOnlyFilesystem) => {
                options.open(&path)
            }
            opened => opened,
        };
        let file = match opened {
            Ok(file) => file,
            Err(e) if matches!(e.kind(), PermissionDenied | NotFound) && dir.is_dir() => {
                return Ok(Some(DirLock { held: None }));
            }
            Err(e) => return Err(e),
        };
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other(format!(
                "expected `{LOCK}` to be a regular file; remove it"
            )));
        }
        match file.try_lock() {
            Ok(()) if is_named(&file, &path) => {
                return Ok(Some(DirLock { held: Some((file, path)) }));
            }
            // The previous holder removed the file after it was opened here: create it again.
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(None),
            Err(std::fs::TryLockError::Error(_)) => return Ok(Some(DirLock { held: None })),
        }
    }
}

/// The lock of a folder ([`lock_dir`]).
#[derive(Debug)]
pub struct DirLock {
    /// The lock file. It is locked while it is open.
    held: Option<(File, PathBuf)>,
}

impl DirLock {
    /// Whether no other writer has a lock. `false` if the file system has no locks or the folder is read-only.
    pub fn is_exclusive(&self) -> bool {
        self.held.is_some()
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Removed before it is unlocked: afterwards it may be the lock of another process.
        if let Some((_, path)) = &self.held {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The folder that contains `path`.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The prefix of temporary files of `path`: `.<name>.tmp`.
///
/// # Errors
/// `path` has no file name.
pub fn prefix(path: &Path) -> std::io::Result<String> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(format!(".{}{MARK}", name.to_string_lossy()))
}

/// A builder of temporary files with the permissions of the umask. The default of `tempfile` is private files.
pub fn builder(prefix: &str) -> tempfile::Builder<'_, 'static> {
    let mut options = tempfile::Builder::new();
    #[cfg(unix)]
    options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    options.prefix(prefix).rand_bytes(RANDOM);
    options
}

/// Creates a temporary file and locks it. The lock marks the file of a running process.
///
/// # Errors
/// The errors of `create`.
pub fn locked(
    create: impl Fn() -> std::io::Result<tempfile::NamedTempFile>,
) -> std::io::Result<tempfile::NamedTempFile> {
    loop {
        let temp = create()?;
        // Before it is locked, another process may treat the file as abandoned and remove it: create another one then.
        let taken = matches!(temp.as_file().try_lock(), Err(std::fs::TryLockError::WouldBlock));
        if !taken && std::fs::symlink_metadata(temp.path()).is_ok() {
            return Ok(temp);
        }
    }
}

/// Unlocked files named `<prefix>` and six more characters in a folder, each open and locked.
pub fn abandoned(dir: &Path, prefix: &str) -> Vec<(PathBuf, File)> {
    let mut found = vec![];
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|n| n.strip_prefix(prefix));
        let ours = random
            .is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()));
        // Symbolic links and pipes are not opened.
        if ours && entry.file_type().is_ok_and(|t| t.is_file()) {
            let path = entry.path();
            if let Ok(file) = File::options().read(true).write(true).open(&path)
                && is_at(&file, &path)
                && file.try_lock().is_ok()
            {
                found.push((path, file));
            }
        }
    }
    found
}

/// Whether an open file is the one at `path`, without following a link, and has no other hard link, which another
/// program may use.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    if !file.metadata().is_ok_and(|open| std::os::unix::fs::MetadataExt::nlink(&open) == 1) {
        return false;
    }
    is_named(file, path)
}

/// Whether an open file is the one at `path`, without following a link.
fn is_named(file: &File, path: &Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), std::fs::symlink_metadata(path)) else {
        return false;
    };
    #[cfg(unix)]
    let same = {
        use std::os::unix::fs::MetadataExt;
        (open.dev(), open.ino()) == (named.dev(), named.ino())
    };
    #[cfg(not(unix))]
    let same = open.len() == named.len();
    named.is_file() && same
}

/// Removes the temporary files of killed processes.
pub fn remove_abandoned(dir: &Path, prefix: &str) {
    for (path, _lock) in abandoned(dir, prefix) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write_atomic(&path, |w| w.write_all(b"old")).unwrap();
        let e = write_atomic(&path, |w| {
            w.write_all(b"ne").and(Err(std::io::Error::other("disk full")))
        })
        .unwrap_err();
        assert!(matches!(&e, DataError::Io { path: p, .. } if *p == path), "{e}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        write_atomic(&path, |w| w.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn missing_folders_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(
            write_atomic(dir.path().join("no/x"), |_| Ok(())),
            Err(DataError::Io { .. })
        ));
        assert!(matches!(
            write_atomic(dir.path().join(".."), |_| Ok(())),
            Err(DataError::Io { .. })
        ));
    }

    #[test]
    fn create_dirs_creates_missing_parents() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create_dirs(&deep).unwrap();
        create_dirs(&deep).unwrap();
        assert!(deep.is_dir());
        std::fs::write(deep.join("file"), "").unwrap();
        assert!(
            create_dirs(deep.join("file")).is_err() && create_dirs(deep.join("file/d")).is_err()
        );
        assert!(create_dirs("").is_err());
    }

    /// Files of running writers and files of other names remain.
    #[test]
    fn temporary_files_of_killed_writers_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in [".x.tmpAbC123", ".y.tmpAbC123", ".x.tmp", ".x.tmpAbC1234", ".x.tmpAb/123"] {
            // The last write fails: the name contains a slash.
            let _ = std::fs::write(at(name), "left over");
        }
        let mut alive = AtomicFile::create(at("x")).unwrap();
        alive.write_all(b"first").unwrap();
        write_atomic(at("x"), |w| w.write_all(b"second")).unwrap();
        assert_eq!(std::fs::read(at("x")).unwrap(), b"second");
        alive.commit().unwrap();
        assert_eq!(std::fs::read(at("x")).unwrap(), b"first");
        let mut left: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, [".x.tmp", ".x.tmpAbC1234", ".y.tmpAbC123", "x"]);
    }

    #[test]
    fn many_writers_of_one_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::thread::scope(|s| {
            for i in 0..8u8 {
                let path = &path;
                s.spawn(move || {
                    (0..20).for_each(|_| write_atomic(path, |w| w.write_all(&[i; 5000])).unwrap())
                });
            }
        });
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() == 5000 && bytes.iter().all(|b| *b == bytes[0]));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("x"), dir.path().join("other"));
        std::fs::write(&other, "mine").unwrap();
        for name in ["x", ".x.tmpAbC123"] {
            std::os::unix::fs::symlink(&other, dir.path().join(name)).unwrap();
        }
        write_atomic(&path, |w| w.write_all(b"new")).unwrap();
        assert_eq!(
            (std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap()),
            (b"new".to_vec(), b"mine".to_vec())
        );
        assert!(path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = dir.path().join(LOCK);
        let first = lock_dir(&dir).unwrap();
        assert!(
            first.as_ref().is_some_and(DirLock::is_exclusive)
                && held.is_file()
                && lock_dir(&dir).unwrap().is_none()
        );
        drop(first);
        assert!(!held.exists(), "a lock leaves no file");
        // The lock file of a killed process.
        std::fs::write(&held, "").unwrap();
        assert!(lock_dir(&dir).unwrap().is_some());
        assert!(!held.exists() && lock_dir(dir.path().join("none")).is_err());
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(lock_dir(dir.path().join("file")).is_err());
        std::fs::create_dir(&held).unwrap();
        assert!(lock_dir(&dir).is_err());
    }

    /// Threads lock, count and unlock. A lock file that its holder removed must not lock the next thread.
    #[test]
    fn locks_of_many_threads() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let (dir, inside) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
        let lock = || {
            for _ in 0..200 {
                let lock = loop {
                    match lock_dir(&dir).unwrap() {
                        Some(lock) => break lock,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two threads hold the lock");
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(lock);
            }
        };
        std::thread::scope(|s| (0..4).for_each(|_| drop(s.spawn(lock))));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    }

    /// Through a link, the lock and its removal would affect another file.
    #[cfg(unix)]
    #[test]
    fn a_link_as_lock_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", dir.path().join(LOCK)).unwrap();
        assert!(lock_dir(&dir).is_err() && !dir.path().join("elsewhere").exists());
    }

    /// No user can create files in `/sys`, not even root.
    #[cfg(target_os = "linux")]
    #[test]
    fn folders_that_may_only_be_read() {
        let dir = Path::new("/sys/kernel");
        if dir.is_dir() {
            assert!(lock_dir(dir).unwrap().is_some_and(|lock| !lock.is_exclusive()));
            create_dirs(dir).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn permissions_follow_the_umask() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        write_atomic(&a, |_| Ok(())).unwrap();
        std::fs::write(&b, "").unwrap();
        let mode = |p| std::fs::metadata(p).unwrap().permissions().mode();
        assert_eq!(mode(&a), mode(&b));
    }
}
