//! Writes tables as folders of `.npy` arrays.

use burn_gnn_files::DataError;
use burn_gnn_graph::FileId;

use super::table::{Cells, FileIds, Table, TableColumn};
use crate::arrays::npy::{write_npy, write_npy_numbers, write_npy_texts};
use crate::files::{create_dirs, format_error, io_error};

pub(super) fn write(table: &Table<'_>) -> Result<(), DataError> {
    let unsafe_name = |name: &str| {
        name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0', ':'])
    };
    if let Some(column) = table.columns.iter().find(|c| unsafe_name(&c.key)) {
        let why = format!(
            "expected names of files, without `/`, `\\`, `:` and a leading dot, found {:?}; rename the column",
            column.key
        );
        return Err(format_error(table.path, why));
    }
    create_dirs(table.path).map_err(|e| io_error(table.path, e))?;
    for TableColumn { key, cells, .. } in &table.columns {
        let path = |suffix: &str| table.path.join(format!("{key}{suffix}.npy"));
        match cells {
            Cells::Ids(ids) => write_ids(&path(""), ids)?,
            Cells::Column(column) => write_npy(path(""), *column)?,
            Cells::Texts(texts) => {
                write_npy_texts(&path(""), (0..texts.len()).map(|row| texts.get(row)))?
            }
            Cells::List(list) => {
                write_npy_numbers(&path(".indptr"), list.indptr().iter().map(|&i| i as i64))?;
                write_npy_numbers(&path(".values"), list.values().iter().copied())?;
            }
        }
    }
    Ok(())
}

fn write_ids(path: &std::path::Path, ids: &FileIds<'_>) -> Result<(), DataError> {
    let text = |row| match ids.get(row) {
        FileId::Text(id) => id,
        FileId::Int(id) => unreachable!("number {id} among texts"),
    };
    if ids.is_text() {
        return write_npy_texts(path, (0..ids.count).map(text));
    }
    write_npy_numbers(path, (0..ids.count).map(|row| ids.number(row)))
}
