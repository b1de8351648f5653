//! Reads a file of a table: CSV or Parquet.

use std::path::Path;

use burn_gnn_files::DataError;
use rayon::prelude::*;

use super::convert::{Bad, Fields, RawColumn};
use crate::database::column::ColumnKind;
use crate::database::options::DatabaseOptions;
use crate::files::{Expected, table_error};
use crate::tables::rows::csv::csv_line;
use crate::tables::rows::text_columns::TextColumns;
use crate::tables::text::decompress::is_parquet;

/// The fix for a value that does not match the declared kind.
const REMEDY: &str = "correct the value, or declare another kind with `DatabaseOptions::with_kind`";

/// Reads the columns of a table. `kind` is the declared kind of a column.
pub(super) fn read_table_file(
    path: &Path,
    table: &str,
    options: &DatabaseOptions,
    kind: &(dyn Fn(&str) -> Option<ColumnKind> + Sync),
) -> Result<Vec<RawColumn>, DataError> {
    if is_parquet(path)? {
        #[cfg(feature = "parquet")]
        return read_parquet(path, table, options, kind);
        #[cfg(not(feature = "parquet"))]
        return Err(DataError::Feature { what: path.display().to_string(), feature: "parquet" });
    }
    let texts = TextColumns::read(path, &options.csv, options.max_expansion, options.max_rows)?;
    let columns: Vec<usize> = (0..texts.names.len())
        // Columns without a name are row numbers that pandas writes.
        .filter(|&c| !texts.names[c].is_empty() && !options.is_ignored(table, &texts.names[c]))
        .collect();
    let read: Vec<_> =
        columns.into_par_iter().map(|c| csv_column(&texts, c, options, kind)).collect();
    let error = |(column, bad): (usize, Bad)| {
        let line = csv_line(path, &options.csv, bad.row);
        let expected = Expected::from(bad.expected).of_column(&texts.names[column]).or(REMEDY);
        table_error(path, line, column + 1, expected, &bad.found)
    };
    read.into_iter().collect::<Result<_, _>>().map_err(error)
}

fn csv_column(
    texts: &TextColumns,
    column: usize,
    options: &DatabaseOptions,
    kind: &(dyn Fn(&str) -> Option<ColumnKind> + Sync),
) -> Result<RawColumn, (usize, Bad)> {
    let name = texts.names[column].clone();
    let fields = Fields {
        fields: texts.fields(column),
        rows: texts.rows,
        bytes: texts.bytes(column),
        decimal: options.csv.decimal as u8,
    };
    let converted = match kind(&name) {
        Some(kind) => fields.of_kind(kind),
        None => fields.inferred(),
    };
    let (values, missing) = converted.map_err(|bad| (column, bad))?;
    Ok(RawColumn { name, values, missing })
}

#[cfg(feature = "parquet")]
fn read_parquet(
    path: &Path,
    table: &str,
    options: &DatabaseOptions,
    kind: &(dyn Fn(&str) -> Option<ColumnKind> + Sync),
) -> Result<Vec<RawColumn>, DataError> {
    use super::convert::{to_kind, vectors_of_floats};
    let keep = |name: &str| !options.is_ignored(table, name);
    let max_rows = options.max_rows.unwrap_or(usize::MAX);
    let columns =
        super::parquet_columns::read_columns(path, options.max_expansion, max_rows, &keep)?;
    let convert = |RawColumn { name, values, missing }: RawColumn| {
        let converted = match kind(&name) {
            Some(kind) => to_kind(values, missing, kind),
            None => Ok(vectors_of_floats(values, missing)),
        };
        let error = |bad: Bad| DataError::Database {
            table: table.to_owned(),
            column: name.clone(),
            row: Some(bad.row as u64 + 1),
            message: format!("expected {}, found `{}`; {REMEDY}", bad.expected, bad.found),
        };
        let (values, missing) = converted.map_err(|bad| error(bad).in_file(path))?;
        Ok(RawColumn { name, values, missing })
    };
    let converted: Vec<_> = columns.into_par_iter().map(convert).collect();
    converted.into_iter().collect()
}
