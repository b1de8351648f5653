//! Opens and reads regular files; constructs the errors of readers.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::error::DataError;
use crate::truncate::{cut, cut_quoted};

/// A [`DataError::Format`]. Quoted texts are truncated, since they may come from the file.
pub fn format_error(path: &Path, message: impl Into<String>) -> DataError {
    DataError::Format { path: path.into(), message: cut_quoted(message.into()) }
}

/// A [`DataError::Io`].
pub fn io_error(path: &Path, source: std::io::Error) -> DataError {
    DataError::Io { path: path.into(), source }
}

/// The error of a failed read. Errors of decompressors describe the content, so they become [`DataError::Format`].
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

/// Opens a regular file and returns it with its length.
///
/// Anything else is an error: a directory, a pipe (which blocks), a device (which never ends). The check is on the
/// opened file, so the path cannot be exchanged between check and use.
///
/// # Errors
/// [`DataError::Io`]; [`DataError::Format`] if `path` is not a regular file.
pub fn open(path: &Path) -> Result<(File, u64), DataError> {
    open_with(path, File::options().read(true))
}

/// [`open`] with other options, which may create the file.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, options: &OpenOptions) -> Result<(File, u64), DataError> {
    let regular = |meta: &Metadata| {
        if meta.is_file() {
            return Ok(());
        }
        Err(format_error(
            path,
            format!("expected a regular file, found {}; copy its content to a file", kind(meta)),
        ))
    };
    // Checked before opening as well, since opening alone has effects on some devices. A missing file is created by
    // `options`, or `options.open` returns the error.
    match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        meta => regular(&meta.map_err(|e| io_error(path, e))?)?,
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "flags are for Unix"))]
    let mut options = options.clone();
    // Without this flag, opening a pipe waits for a writer. It has no effect on regular files.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path).map_err(|e| io_error(path, e))?;
    let meta = file.metadata().map_err(|e| io_error(path, e))?;
    regular(&meta)?;
    Ok((file, meta.len()))
}

/// Reads a whole regular file.
///
/// # Errors
/// As [`open`]; [`DataError::Io`] if the bytes do not fit in memory.
pub fn read_file(path: &Path) -> Result<Vec<u8>, DataError> {
    read_bounded(path, u64::MAX)
}

/// Reads a whole regular file of at most `limit` bytes.
///
/// # Errors
/// As [`read_file`]; [`DataError::Format`] for a longer one.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, DataError> {
    let (file, len) = open(path)?;
    if len > limit {
        return Err(format_error(path, format!("expected at most {limit} bytes, found {len}")));
    }
    let mut bytes = vec![];
    reserve(path, len, &mut bytes)?;
    // `take` keeps the bound if the file grows during the read.
    file.take(limit).read_to_end(&mut bytes).map_err(|e| io_error(path, e))?;
    Ok(bytes)
}

/// Reserves memory for `more` bytes of a file. Fails instead of aborting, since a sparse file may be longer than memory.
///
/// # Errors
/// [`DataError::Io`].
pub fn reserve(path: &Path, more: u64, bytes: &mut Vec<u8>) -> Result<(), DataError> {
    let room = usize::try_from(more).is_ok_and(|n| bytes.try_reserve_exact(n).is_ok());
    if room { Ok(()) } else { Err(io_error(path, std::io::ErrorKind::OutOfMemory.into())) }
}

/// Joins `dir` and `file`, where `file` is a path in the untrusted description `described_in` and must stay inside
/// `dir`. Symbolic links in the folder are followed: the user who created them may read their target.
///
/// # Errors
/// [`DataError::Format`].
pub fn inside(dir: &Path, described_in: &Path, file: &str) -> Result<PathBuf, DataError> {
    /// Longest path. Systems allow no longer ones, and error messages contain it.
    const MOST: usize = 1 << 12;
    if file.len() > MOST {
        let why = format!("file name: expected at most {MOST} bytes, found {file:?}");
        return Err(format_error(described_in, why));
    }
    let plain = Path::new(file).components().all(|c| matches!(c, Component::Normal(_)));
    // A drive letter or a backslash is a plain name on Unix and leads out of the folder on Windows. Other colons are
    // part of a name, as in DGL's `edge_index/author:writes:paper0.txt`.
    let drive = file.as_bytes().get(1) == Some(&b':');
    if file.is_empty() || !plain || drive || file.contains(['\\', '\0']) {
        return Err(format_error(
            described_in,
            format!("file name: expected a relative path inside the folder, found {file:?}"),
        ));
    }
    Ok(dir.join(file))
}

/// A noun for a file that is not regular.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_folder_are_errors() {
        let (dir, json) = (Path::new("d"), Path::new("d/m.json"));
        for good in ["edges/a.npy", "edge_index/a:writes:b0.txt"] {
            assert_eq!(inside(dir, json, good).unwrap(), dir.join(good));
        }
        let e = inside(dir, json, &"x/".repeat(40_000)).unwrap_err().to_string();
        assert!(e.contains("at most 4096 bytes") && e.len() < 300, "{e}");
        for bad in ["", "../x", "a/../../x", "/etc/passwd", "C:x", "a\\..\\x", "a\0b", "./a", ".."]
        {
            let e = inside(dir, json, bad).unwrap_err();
            assert!(
                matches!(&e, DataError::Format { path, message } if path == json && message.contains("inside the folder")),
                "{bad}: {e}"
            );
        }
    }

    /// Opening a pipe, a device or a folder fails with every set of options, without blocking.
    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let mut append = File::options();
        append.read(true).append(true).create(true);
        let mut fresh = File::options();
        fresh.read(true).write(true).create(true).truncate(true);
        for (path, what) in
            [(&*pipe, "a pipe"), (Path::new("/dev/zero"), "a device"), (dir.path(), "a directory")]
        {
            let found = [
                open(path).map(drop),
                open_with(path, &append).map(drop),
                open_with(path, &fresh).map(drop),
                read_file(path).map(drop),
            ];
            for e in found.map(Result::unwrap_err) {
                let expected = format!("expected a regular file, found {what}");
                assert!(e.to_string().contains(&expected), "{e}");
            }
        }
        let new = dir.path().join("new");
        assert!(matches!(open(&new), Err(DataError::Io { .. })));
        assert_eq!(open_with(&new, &append).unwrap().1, 0);
        std::fs::write(&new, "12345").unwrap();
        assert_eq!(open_with(&new, &fresh).unwrap().1, 0);
    }

    #[test]
    fn read_bounded_rejects_longer_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_bounded(&file, 5).unwrap(), b"12345");
        assert!(
            read_bounded(&file, 4)
                .unwrap_err()
                .to_string()
                .contains("expected at most 4 bytes, found 5")
        );
        assert!(matches!(read_bounded(dir.path(), 9), Err(DataError::Format { .. })));
        assert!(matches!(read_bounded(&dir.path().join("none"), 9), Err(DataError::Io { .. })));
    }

    #[test]
    fn sparse_files_longer_than_memory_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("holes");
        // Longer than the address space. On file systems without sparse files, `reserve` alone is tested.
        let long = 1u64 << 60;
        let made = std::fs::File::create(&path).unwrap().set_len(long).is_ok();
        let e = if made {
            read_bounded(&path, u64::MAX).unwrap_err()
        } else {
            reserve(&path, long, &mut vec![]).unwrap_err()
        };
        assert!(
            matches!(&e, DataError::Io { source, .. } if source.kind() == std::io::ErrorKind::OutOfMemory),
            "{e:?}"
        );
        assert!(reserve(&path, u64::MAX, &mut vec![]).is_err());
    }
}
