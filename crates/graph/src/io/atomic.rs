//! Files that are complete or not there.

use std::io::{BufWriter, Write};
use std::path::Path;

use super::files::io_error;
use crate::GraphError;

/// Writes a file under a temporary name in the same folder, syncs it, and renames it to `path`.
///
/// A reader sees the old content or the new, never a part; after a crash at most a file named
/// `.tmp…` is left over. The folder must exist. Permissions are those of any new file.
///
/// ```
/// # use std::io::Write;
/// # let dir = tempfile::tempdir().unwrap();
/// let path = dir.path().join("counts.json");
/// burn_gnn_graph::io::write_atomic(&path, |w| w.write_all(b"[1, 2]"))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"[1, 2]");
/// # Ok::<(), burn_gnn_graph::GraphError>(())
/// ```
///
/// # Errors
/// [`GraphError::Io`] with `path` when the folder cannot be written, when `content` fails, or when the
/// rename does; the temporary file is removed.
pub fn write_atomic(path: impl AsRef<Path>, content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), GraphError> {
    let path = path.as_ref();
    let write = || -> std::io::Result<()> {
        let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut options = tempfile::Builder::new();
        // Temporary files are private by default; a data set is for everyone whom the umask lets in.
        #[cfg(unix)]
        options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let temp = options.prefix(".tmp").tempfile_in(dir)?;
        let mut w = BufWriter::with_capacity(1 << 20, temp.as_file());
        content(&mut w)?;
        w.flush()?;
        drop(w);
        temp.as_file().sync_all()?;
        temp.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(|e| io_error(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write_atomic(&path, |w| w.write_all(b"old")).unwrap();
        let e = write_atomic(&path, |w| w.write_all(b"ne").and(Err(std::io::Error::other("disk full")))).unwrap_err();
        assert!(matches!(&e, GraphError::Io { path: p, .. } if *p == path), "{e}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        write_atomic(&path, |w| w.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_folder_that_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(write_atomic(dir.path().join("no/x"), |_| Ok(())), Err(GraphError::Io { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_what_the_umask_allows() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        write_atomic(&a, |_| Ok(())).unwrap();
        std::fs::write(&b, "").unwrap();
        let mode = |p| std::fs::metadata(p).unwrap().permissions().mode();
        assert_eq!(mode(&a), mode(&b));
    }
}
