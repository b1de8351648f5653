//! Reads one table without a description of a database.

use std::path::Path;

use burn_gnn_files::DataError;

use super::assemble::TableSpec;
use super::table_file::read_table_file;
use crate::database::options::DatabaseOptions;
use crate::database::table::DatabaseTable;
use crate::files::format_error;

impl DatabaseTable {
    /// Reads a CSV or Parquet file as a table without keys, such as a list of entities. Its name is that of the file,
    /// without extension; kinds are inferred by the rules of [`Database`](crate::Database) over all rows.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// let path = dir.path().join("drivers.csv");
    /// std::fs::write(&path, "driverId,name\n7,Ada\n3,Bo\n").unwrap();
    /// let table = burn_gnn_data::DatabaseTable::open(&path)?;
    /// assert_eq!((table.name(), table.rows()), ("drivers", 2));
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`](crate::Database::open) for the file of a table.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_with(path, &DatabaseOptions::default())
    }

    /// [`open`](Self::open) with declared kinds, a number of rows, a CSV dialect.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &DatabaseOptions) -> Result<Self, DataError> {
        let path = path.as_ref();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let name = name.split_once('.').map_or(&*name, |(name, _)| name);
        if name.is_empty() {
            let why = "expected a file with a name before its extension, which names the table";
            return Err(format_error(path, why));
        }
        let spec = TableSpec { name: name.to_owned(), ..TableSpec::default() };
        let columns = read_table_file(path, name, options, &|column| spec.kind(column, options))?;
        spec.table(columns, options, None).map_err(|e| e.in_file(path))
    }
}
