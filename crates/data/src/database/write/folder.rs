//! Writes a folder completely or not at all.

use std::path::Path;

use burn_gnn_files::DataError;

use crate::database::database::Database;

impl Database {
    /// Writes the database in RelBench's layout, which its Python package reads, and [`open`](Self::open) as well
    /// (feature `parquet`).
    ///
    /// RelBench requires that primary keys are the numbers of rows and that rows are in order of time, so that a frozen
    /// database has the first rows of each table. Therefore:
    ///
    /// * Rows are written in [order of time](Self::sorted_by_time).
    /// * Primary keys of one column, and foreign keys to them, are written as numbers of rows; a foreign key that refers to
    ///   no row is a null. The original values are written to `keys/<table>.parquet`, from which `open` restores them.
    /// * Kinds, composite keys, and keys that are part of a primary key are in the entry `burn_gnn` of `manifest.yaml`,
    ///   which RelBench ignores.
    /// * A task of the kind [`Forecast`](crate::TaskKind::Forecast) without [`sql`](crate::DatabaseTask::sql) is written as
    ///   an external task, since RelBench would run the query of a forecast to compute its labels; `open` restores the kind.
    ///
    /// `open` returns a database that equals [`sorted_by_time`](Self::sorted_by_time) of this one, except for the numbers
    /// of dropped task rows, which are 0.
    ///
    /// ```
    /// # #[cfg(all(feature = "parquet", feature = "yaml"))] {
    /// use burn_gnn_data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let id = DatabaseColumn::new("id", ColumnKind::Key, ColumnValues::Ints(vec![7, 3]))?;
    /// let name = DatabaseColumn::new("name", ColumnKind::Text, ColumnValues::Texts(["a", "b"].into_iter().collect()))?;
    /// let db = Database::new("small", [DatabaseTable::new("people", [id, name])?.with_primary_key(["id"])?])?;
    /// let path = dir.path().join("small");
    /// db.write(&path)?;
    /// assert_eq!(Database::open(&path)?, db);
    /// # }
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Format`] if the folder exists and is not empty, or if the name of a table or task cannot be the name of
    /// a file; [`DataError::Io`]; [`DataError::Feature`]. The folder appears under its name when all of its files are on
    /// disk.
    ///
    /// # Cost
    /// One pass over the columns; columns of keys are copied.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        #[cfg(not(feature = "parquet"))]
        return Err(DataError::Feature {
            what: path.as_ref().display().to_string(),
            feature: "parquet",
        });
        #[cfg(feature = "parquet")]
        write_folder(path.as_ref(), |dir| super::layout::write_database(self, dir))
    }
}

/// Writes a folder under a temporary name, then renames it.
#[cfg(feature = "parquet")]
fn write_folder(
    path: &Path,
    content: impl FnOnce(&Path) -> Result<(), DataError>,
) -> Result<(), DataError> {
    use burn_gnn_files::internal::folder;

    use crate::files::{create_dirs, format_error, io_error, lock_dir, sync_dir};
    let io = |e| io_error(path, e);
    if std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) || path.is_file() {
        let why = "expected a new or empty folder, found one with files; remove it or write to another path";
        return Err(format_error(path, why));
    }
    let Some(name) = path.file_name() else {
        return Err(format_error(path, "expected the name of a folder, found a path without one"));
    };
    let parent = folder(path);
    create_dirs(parent).map_err(io)?;
    let temporary = parent.join(format!(".{}.tmp", name.to_string_lossy()));
    create_dirs(&temporary).map_err(io)?;
    let Some(lock) = lock_dir(&temporary).map_err(io)? else {
        let why = "expected no other writer of this folder, found one; wait until it has finished";
        return Err(format_error(path, why));
    };
    // What a killed process left.
    let clear = || -> std::io::Result<()> {
        for entry in std::fs::read_dir(&temporary)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else if entry.file_name() != crate::files::LOCK {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    };
    clear().map_err(io)?;
    if let Err(e) = content(&temporary) {
        let _ = clear();
        drop(lock);
        let _ = std::fs::remove_dir(&temporary);
        return Err(e);
    }
    drop(lock);
    sync_dir(&temporary).map_err(io)?;
    // An empty folder of this name is replaced.
    std::fs::rename(&temporary, path).map_err(io)?;
    sync_dir(parent).map_err(io)
}
