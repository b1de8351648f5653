//! Writes one table to a file.

use std::io;
use std::path::Path;

use burn_gnn_files::DataError;

use crate::database::column::{ColumnValues, DatabaseColumn};
use crate::database::table::DatabaseTable;
use crate::files::{format_error, write_atomic};
use crate::tables::text::time::iso_text;

impl DatabaseTable {
    /// Writes the table to a file, `.csv` or `.parquet` (feature `parquet`), such as a table of predictions. Keys to other
    /// tables are not written.
    ///
    /// Parquet: times are timestamps in microseconds, missing values nulls. CSV: comma, header, quotes as in RFC 4180;
    /// times in ISO 8601, booleans `true` and `false`, missing values and NaN as empty fields.
    /// [`open`](Self::open) reads both.
    ///
    /// ```
    /// use burn_gnn_data::{ColumnKind, ColumnValues, DatabaseColumn, DatabaseTable};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let date = DatabaseColumn::new("date", ColumnKind::Time, ColumnValues::Times(vec![0, 1_500_000]))?;
    /// let value = DatabaseColumn::new("value", ColumnKind::Number, ColumnValues::Floats(vec![0.5, f64::NAN]))?;
    /// let path = dir.path().join("values.csv");
    /// DatabaseTable::new("values", [date, value])?.write(&path)?;
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "date,value\n1970-01-01,0.5\n1970-01-01 00:00:01.5,\n");
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Format`] for another extension, and for lists and vectors in a CSV file; [`DataError::Feature`];
    /// [`DataError::Io`]. The file is written completely or not at all.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), DataError> {
        let path = path.as_ref();
        match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
            Some("csv") => write_csv(path, self.columns()),
            #[cfg(feature = "parquet")]
            Some("parquet") => {
                super::parquet_file::write_columns(path, &self.columns().iter().collect::<Vec<_>>())
            }
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => {
                Err(DataError::Feature { what: path.display().to_string(), feature: "parquet" })
            }
            other => {
                let found = other.map_or("none".into(), |other| format!("`.{other}`"));
                let why = format!("expected an extension `.csv` or `.parquet`, found {found}");
                Err(format_error(path, why))
            }
        }
    }
}

fn write_csv(path: &Path, columns: &[DatabaseColumn]) -> Result<(), DataError> {
    let nested = |c: &&DatabaseColumn| {
        matches!(c.values(), ColumnValues::Lists(_) | ColumnValues::Vectors { .. })
    };
    if let Some(column) = columns.iter().find(nested) {
        let why = format!(
            "column `{}`: expected numbers, booleans, times or texts, found {}; write a `.parquet` file",
            column.name(),
            column.values().type_name()
        );
        return Err(format_error(path, why));
    }
    let rows = columns.first().map_or(0, DatabaseColumn::len);
    write_atomic(path, |file| {
        let mut out = ::csv::Writer::from_writer(io::BufWriter::with_capacity(1 << 18, file));
        out.write_record(columns.iter().map(DatabaseColumn::name)).map_err(io::Error::other)?;
        let mut record = ::csv::StringRecord::new();
        for row in 0..rows {
            record.clear();
            columns.iter().for_each(|column| record.push_field(&field(column, row)));
            out.write_record(&record).map_err(io::Error::other)?;
        }
        out.flush()
    })
}

fn field(column: &DatabaseColumn, row: usize) -> String {
    if column.is_missing(row) {
        return String::new();
    }
    match column.values() {
        ColumnValues::Ints(v) => v[row].to_string(),
        ColumnValues::Floats(v) if v[row].is_nan() => String::new(),
        ColumnValues::Floats(v) => v[row].to_string(),
        ColumnValues::Texts(v) => v.get(row).to_owned(),
        ColumnValues::Times(v) => iso_text(v[row]),
        ColumnValues::Bools(v) => v[row].to_string(),
        ColumnValues::Lists(_) | ColumnValues::Vectors { .. } => String::new(),
    }
}
