//! Opens a database: recognises the layout of its folder.

use std::path::Path;

use burn_gnn_files::DataError;

use super::schema_json::{SCHEMA, read_schema};
use crate::database::database::Database;
use crate::database::manifest::MANIFEST;
use crate::database::options::DatabaseOptions;
use crate::files::format_error;

impl Database {
    /// Reads a database from a folder, with all tables, rows and tasks.
    ///
    /// **RelBench** (features `parquet` and `yaml`): `manifest.yaml`, `db/<table>.parquet`, and for each task
    /// `tasks/<task>/manifest.yaml` and `{train,val,test}.parquet`.
    ///
    /// **CSV or Parquet files with a `schema.json`**. Of a table, all but its name can be omitted:
    ///
    /// ```json
    /// {
    ///   "database": "racing",
    ///   "val_timestamp": "2005-01-01",
    ///   "test_timestamp": "2010-01-01",
    ///   "tables": {
    ///     "drivers": {"primary_key": "driverId"},
    ///     "results": {
    ///       "file": "tables/results.csv",
    ///       "primary_key": "resultId",
    ///       "time_column": "date",
    ///       "foreign_keys": {"driverId": "drivers"},
    ///       "columns": {"statusId": {"kind": "category"}}
    ///     }
    ///   },
    ///   "tasks": {
    ///     "driver-dnf": {
    ///       "type": "binary_classification",
    ///       "entity_table": "drivers",
    ///       "entity_column": "driverId",
    ///       "time_column": "date",
    ///       "target_column": "did_not_finish",
    ///       "files": {"train": "tasks/driver-dnf/train.csv", "val": "…", "test": "…"}
    ///     }
    ///   }
    /// }
    /// ```
    ///
    /// The file of a table is `tables/<table>.csv` by default, files of a task are `tasks/<task>/{train,val,test}.csv`. A
    /// composite key is a list: `"primary_key": ["season", "round"]`, `"foreign_keys": [{"columns": ["season", "round"],
    /// "table": "races"}]`. Kinds are `key` (or `id`, `foreign_key`), `number` (`int`, `float`), `category`, `text`, `time`
    /// (`date`, `datetime`), `boolean`, `list`, `vector`; they are inferred where none is declared. `rows` of a table or
    /// of a part of a task, if it is given, is compared with the file. Other entries are ignored.
    ///
    /// [`Database`] documents the rules for kinds, times, missing values and keys.
    ///
    /// # Errors
    /// [`DataError::Io`]; [`DataError::Format`] for a folder of another layout, an invalid description, and a missing
    /// column; [`DataError::Table`], with file, line and column, for an invalid field of a CSV file;
    /// [`DataError::Database`] for keys and kinds, as in [`Database::new`]; [`DataError::Feature`].
    ///
    /// # Cost
    /// Tables and columns are read in parallel. In addition to the columns, a row group of a Parquet file per thread, or
    /// the text of a CSV file, is in memory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_with(path, &DatabaseOptions::default())
    }

    /// [`open`](Self::open) with declared kinds, a selection of tables and rows, a CSV dialect.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`DataError::Format`] for an unknown table in the options.
    pub fn open_with(path: impl AsRef<Path>, options: &DatabaseOptions) -> Result<Self, DataError> {
        let dir = path.as_ref();
        if dir.join(MANIFEST).exists() {
            #[cfg(all(feature = "parquet", feature = "yaml"))]
            return super::relbench::read_relbench(dir, options);
            #[cfg(not(all(feature = "parquet", feature = "yaml")))]
            return Err(DataError::Feature {
                what: dir.join(MANIFEST).display().to_string(),
                feature: if cfg!(feature = "parquet") { "yaml" } else { "parquet" },
            });
        }
        if dir.join(SCHEMA).exists() {
            return read_schema(dir, options);
        }
        let found = match std::fs::metadata(dir) {
            Err(e) => return Err(crate::files::io_error(dir, e)),
            Ok(meta) if !meta.is_dir() => "a file",
            Ok(_) => "neither",
        };
        let why = format!(
            "expected a folder with `{MANIFEST}` (RelBench's layout) or `{SCHEMA}` (CSV or Parquet files), found {found}; describe the tables in a `{SCHEMA}`"
        );
        Err(format_error(dir, why))
    }
}
