//! Writes the files of RelBench's layout into a folder.

use std::collections::BTreeMap;
use std::io::Error;
use std::path::Path;

use burn_gnn_files::DataError;
use rayon::prelude::*;
use serde::Serialize;

use super::parquet_file::write_columns;
use crate::database::column::{ColumnKind, ColumnValues, DatabaseColumn, ListColumn, ListValues};
use crate::database::database::Database;
use crate::database::manifest::{DatabaseExtension, KEYS, KeyExtension, MANIFEST, TableExtension};
use crate::database::references::References;
use crate::database::table::DatabaseTable;
use crate::database::task::{DatabaseTask, Part, Targets, TaskKind, TaskRows};
use crate::files::{create_dirs, format_error, io_error, sync_dir, write_atomic};
use crate::tables::text::time::iso_text;

/// A table as RelBench requires it.
struct Rewritten<'a> {
    table: &'a DatabaseTable,
    /// Key columns that are numbers of rows.
    numbered: Vec<DatabaseColumn>,
    /// Foreign keys that RelBench's format has an entry for: column and table.
    foreign_keys: BTreeMap<&'a str, &'a str>,
    extension: TableExtension,
}

/// Writes a database into a folder that exists.
pub(super) fn write_database(db: &Database, dir: &Path) -> Result<(), DataError> {
    let tables = db.tables().iter().map(|t| ("table", t.name()));
    for (what, name) in tables.chain(db.tasks().iter().map(|t| ("task", t.name.as_str()))) {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0', ':']) {
            let why = format!(
                "{what} {name:?}: expected the name of a file, without `/`, `\\`, `:` and a leading dot; rename the {what}"
            );
            return Err(format_error(dir, why));
        }
    }
    let db = db.sorted_by_time();
    let folder = |name: &str| {
        let folder = dir.join(name);
        create_dirs(&folder).map_err(|e| io_error(&folder, e))?;
        Ok::<_, DataError>(folder)
    };
    let tables: Vec<_> = db.tables().par_iter().map(|table| Rewritten::new(&db, table)).collect();
    let tables = tables.into_iter().collect::<Result<Vec<_>, _>>()?;
    let files = folder("db")?;
    let written: Vec<_> = tables.par_iter().map(|table| table.write(&files)).collect();
    written.into_iter().collect::<Result<(), _>>()?;
    if tables.iter().any(|t| t.extension.original_keys) {
        let keys = folder(KEYS)?;
        for table in tables.iter().filter(|t| t.extension.original_keys) {
            let changed: Vec<_> = table.changed().collect();
            write_columns(&keys.join(format!("{}.parquet", table.table.name())), &changed)?;
        }
        sync_dir(&keys).map_err(|e| io_error(&keys, e))?;
    }
    if !db.tasks().is_empty() {
        let tasks = folder("tasks")?;
        for task in db.tasks() {
            let folder = folder(&format!("tasks/{}", task.name))?;
            write_task(task, &folder)?;
        }
        sync_dir(&tasks).map_err(|e| io_error(&tasks, e))?;
    }
    write_text(&dir.join(MANIFEST), &manifest(&db, &tables))
}

impl<'a> Rewritten<'a> {
    fn new(db: &'a Database, table: &'a DatabaseTable) -> Result<Self, DataError> {
        let mut out = Self {
            table,
            numbered: vec![],
            foreign_keys: BTreeMap::new(),
            extension: TableExtension::default(),
        };
        let key = table.primary_key();
        if let [column] = key {
            let rows = ColumnValues::Ints((0..table.rows() as i64).collect());
            out.numbered.push(DatabaseColumn::new(column, ColumnKind::Key, rows)?);
        } else if !key.is_empty() {
            out.extension.primary_key = Some(key.to_vec());
        }
        for (number, foreign) in table.foreign_keys().iter().enumerate() {
            match foreign.columns.as_slice() {
                [column] if !key.contains(column) => {
                    out.foreign_keys.insert(column, &foreign.table);
                    let rows = db.references(table.name(), number)?.rows;
                    let missing = rows.iter().map(|&row| row == References::NONE).collect();
                    let rows = ColumnValues::Ints(rows.into_iter().map(i64::from).collect());
                    let rows = DatabaseColumn::new(column, ColumnKind::Key, rows)?;
                    out.numbered.push(rows.with_missing(missing)?);
                }
                columns => {
                    let (columns, table) = (columns.to_vec(), foreign.table.clone());
                    out.extension.foreign_keys.push(KeyExtension { columns, table });
                }
            }
        }
        let plain = |c: &&DatabaseColumn| !(c.kind() == ColumnKind::Key && table.is_key(c.name()));
        let kinds = table.columns().iter().filter(plain);
        out.extension.kinds = kinds.map(|c| (c.name().to_owned(), c.kind())).collect();
        out.extension.lenient_key = table.has_lenient_key();
        let changed = out.changed().next().is_some();
        out.extension.original_keys = changed;
        Ok(out)
    }

    /// Columns as they are written.
    fn columns(&self) -> impl Iterator<Item = (&DatabaseColumn, &DatabaseColumn)> {
        self.table.columns().iter().map(move |column| {
            (column, self.numbered.iter().find(|c| c.name() == column.name()).unwrap_or(column))
        })
    }
    /// Columns whose values are replaced by numbers of rows.
    fn changed(&self) -> impl Iterator<Item = &DatabaseColumn> {
        let changed = self.columns().filter(|(original, written)| {
            original.values() != written.values() || original.missing() != written.missing()
        });
        changed.map(|(original, _)| original)
    }
    fn write(&self, dir: &Path) -> Result<(), DataError> {
        let columns: Vec<_> = self.columns().map(|(_, written)| written).collect();
        write_columns(&dir.join(format!("{}.parquet", self.table.name())), &columns)
    }
}

/// A value in YAML, of which JSON is a part.
fn yaml(value: &impl Serialize) -> String {
    // Serializing strings and maps with text keys does not fail.
    serde_json::to_string(value).unwrap_or_default()
}

fn manifest(db: &Database, tables: &[Rewritten<'_>]) -> String {
    let mut text = format!("name: {}\nmanifest_version: 1\n", yaml(&db.name()));
    if !db.description().is_empty() {
        text += &format!("description: {}\n", yaml(&db.description()));
    }
    for (name, time) in [("val", db.val_timestamp()), ("test", db.test_timestamp())] {
        if let Some(time) = time {
            text += &format!("{name}_timestamp: {}\n", yaml(&iso_text(time)));
        }
    }
    text += if tables.is_empty() { "tables: {}\n" } else { "tables:\n" };
    let mut extension = DatabaseExtension::default();
    for t in tables {
        let key = match t.table.primary_key() {
            [column] => Some(column),
            _ => None,
        };
        text += &format!("  {}:\n    pkey: {}\n", yaml(&t.table.name()), yaml(&key));
        text += &format!("    time_col: {}\n", yaml(&t.table.time_column()));
        text += &format!("    fkeys: {}\n", yaml(&t.foreign_keys));
        if !t.table.primary_key().is_empty() {
            extension.renumbered.insert(t.table.name().to_owned());
        }
        extension.tables.insert(t.table.name().to_owned(), t.extension.clone());
    }
    text + &format!("burn_gnn: {}\n", yaml(&extension))
}

fn write_text(path: &Path, text: &str) -> Result<(), DataError> {
    write_atomic(path, |file| file.write_all(text.as_bytes()))
}

fn write_task(task: &DatabaseTask, dir: &Path) -> Result<(), DataError> {
    const SECOND: i64 = 1_000_000;
    const DAY: i64 = 86_400 * SECOND;
    // RelBench recomputes the labels of a forecast by its query.
    let written_kind = match (task.kind, &task.sql) {
        (TaskKind::Forecast, None) => TaskKind::External,
        (kind, _) => kind,
    };
    let mut text = format!("name: {}\nkind: {}\n", yaml(&task.name), yaml(&written_kind));
    let mut entry = |key: &str, value: String| text += &format!("{key}: {value}\n");
    entry("task_type", yaml(&task.task_type));
    if !task.description.is_empty() {
        entry("description", yaml(&task.description));
    }
    match &task.destination {
        None => {
            entry("entity_table", yaml(&task.entity_table));
            entry("entity_col", yaml(&task.entity_column));
        }
        Some(d) => {
            entry("src_entity_table", yaml(&task.entity_table));
            entry("src_entity_col", yaml(&task.entity_column));
            entry("dst_entity_table", yaml(&d.table));
            entry("dst_entity_col", yaml(&d.column));
            entry("eval_k", yaml(&d.k));
        }
    }
    for (key, column) in [("target_col", &task.target_column), ("time_col", &task.time_column)] {
        if !column.is_empty() {
            entry(key, yaml(column));
        }
    }
    if let Some(delta) = task.timedelta {
        entry(
            "timedelta",
            match delta {
                delta if delta % DAY == 0 => yaml(&format!("{} days", delta / DAY)),
                delta if delta % SECOND == 0 => yaml(&format!("{} seconds", delta / SECOND)),
                delta => yaml(&format!("{delta} us")),
            },
        );
    }
    if task.num_eval_timestamps != 1 {
        entry("num_eval_timestamps", yaml(&task.num_eval_timestamps));
    }
    if !task.remove_columns.is_empty() {
        entry("remove_columns", yaml(&task.remove_columns));
    }
    if let Some(sql) = &task.sql {
        entry("sql", yaml(sql));
    }
    entry("manifest_version", "1".into());
    if written_kind != task.kind {
        entry("burn_gnn_kind", yaml(&task.kind));
    }
    for part in Part::ALL {
        let columns = label_columns(task, task.rows(part))?;
        let columns: Vec<_> = columns.iter().collect();
        write_columns(&dir.join(format!("{part}.parquet")), &columns)?;
    }
    write_text(&dir.join(MANIFEST), &text)?;
    sync_dir(dir).map_err(|e: Error| io_error(dir, e))
}

/// The columns of a label table; entities are numbers of rows.
fn label_columns(task: &DatabaseTask, rows: &TaskRows) -> Result<Vec<DatabaseColumn>, DataError> {
    let numbers = |rows: &[u32]| rows.iter().map(|&row| i64::from(row)).collect();
    let mut columns = vec![];
    if !task.time_column.is_empty() {
        let times = ColumnValues::Times(rows.times.clone());
        columns.push(DatabaseColumn::new(&task.time_column, ColumnKind::Time, times)?);
    }
    let entities = ColumnValues::Ints(numbers(&rows.entities));
    columns.push(DatabaseColumn::new(&task.entity_column, ColumnKind::Key, entities)?);
    let target = match &task.destination {
        Some(d) => &d.column,
        None => &task.target_column,
    };
    columns.push(match &rows.targets {
        Targets::Classes(v) => {
            let missing = v.iter().map(|&class| class < 0).collect();
            let classes = ColumnValues::Ints(v.clone());
            DatabaseColumn::new(target, ColumnKind::Number, classes)?.with_missing(missing)?
        }
        Targets::Values(v) => {
            DatabaseColumn::new(target, ColumnKind::Number, ColumnValues::Floats(v.clone()))?
        }
        Targets::Labels { columns, values } => {
            let width = (*columns).max(1);
            let missing = values.chunks_exact(width).map(|row| row[0].is_nan()).collect();
            let vectors = ColumnValues::Vectors { width, values: values.clone() };
            DatabaseColumn::new(target, ColumnKind::Vector, vectors)?.with_missing(missing)?
        }
        Targets::Lists(lists) => {
            let ends = lists.iter().scan(0, |end, list| {
                *end += list.len() as u64;
                Some(*end)
            });
            let indptr = std::iter::once(0).chain(ends).collect();
            let rows = ListValues::Ints(numbers(&lists.concat()));
            let lists = ColumnValues::Lists(ListColumn::new(indptr, rows)?);
            DatabaseColumn::new(target, ColumnKind::List, lists)?
        }
    });
    Ok(columns)
}
