//! Reads databases in RelBench's layout.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::assemble::TableSpec;
use super::description::{Timestamps, label_reader, read_tables};
use super::table_file::read_table_file;
use crate::database::column::ColumnKind;
use crate::database::database::Database;
use crate::database::manifest::{DatabaseExtension, KEYS, MANIFEST};
use crate::database::options::DatabaseOptions;
use crate::database::table::{DatabaseTable, ForeignKey};
use crate::database::task::{DatabaseTask, Destination, Part, TaskKind, TaskType};
use crate::files::{MARK, cut, format_error, inside, io_error, read_bounded};

/// The version of the format.
const VERSION: u64 = 1;
/// Most bytes of a manifest; queries in it take some kilobytes.
const MOST: u64 = 16 << 20;

#[derive(Deserialize)]
struct Manifest {
    name: String,
    manifest_version: Option<u64>,
    description: Option<String>,
    val_timestamp: Option<String>,
    test_timestamp: Option<String>,
    #[serde(default)]
    tables: BTreeMap<String, TableEntry>,
    /// What RelBench's format has no entry for.
    burn_gnn: Option<DatabaseExtension>,
}

#[derive(Deserialize)]
struct TableEntry {
    pkey: Option<String>,
    time_col: Option<String>,
    fkeys: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct TaskManifest {
    name: Option<String>,
    kind: TaskKind,
    task_type: TaskType,
    description: Option<String>,
    entity_table: Option<String>,
    entity_col: Option<String>,
    target_col: Option<String>,
    time_col: Option<String>,
    src_entity_table: Option<String>,
    src_entity_col: Option<String>,
    dst_entity_table: Option<String>,
    dst_entity_col: Option<String>,
    eval_k: Option<usize>,
    timedelta: Option<String>,
    num_eval_timestamps: Option<usize>,
    remove_columns: Option<Vec<(String, String)>>,
    sql: Option<String>,
    manifest_version: Option<u64>,
    /// The kind, if RelBench has no entry for it.
    burn_gnn_kind: Option<TaskKind>,
}

/// Reads a database from a folder with a `manifest.yaml`.
pub(super) fn read_relbench(dir: &Path, options: &DatabaseOptions) -> Result<Database, DataError> {
    let yaml = dir.join(MANIFEST);
    let manifest: Manifest = read_yaml(&yaml)?;
    check_version(&yaml, manifest.manifest_version)?;
    let times = Timestamps::parse(&yaml, [&manifest.val_timestamp, &manifest.test_timestamp])?;
    let extension = manifest.burn_gnn.unwrap_or_default();
    let tables = read_tables(&yaml, options, manifest.tables, |name, entry| {
        read_table(dir, &yaml, name, entry, &extension, options, times.kinds_until())
    })?;
    let mut db = Database::new(manifest.name, tables)
        .map_err(|e| e.in_file(&yaml))?
        .with_timestamps(times.val, times.test)
        .with_description(manifest.description.unwrap_or_default());
    if !options.tasks {
        return Ok(db);
    }
    for name in task_names(&dir.join("tasks"))? {
        let folder = dir.join("tasks").join(&name);
        if let Some(task) = read_task(&folder, &db, name, &extension.renumbered, options)? {
            if db.task(&task.name).is_ok() {
                let why = format!(
                    "expected a task of another name than the other folders, found `{}` again; rename one",
                    cut(&task.name)
                );
                return Err(format_error(&folder.join(MANIFEST), why));
            }
            db = db.with_task(task).map_err(|e| e.in_file(folder.join(MANIFEST)))?;
        }
    }
    Ok(db)
}

fn read_yaml<T: DeserializeOwned>(path: &Path) -> Result<T, DataError> {
    let bytes = read_bounded(path, MOST)?;
    serde_saphyr::from_slice(bytes.strip_prefix(MARK).unwrap_or(&bytes))
        .map_err(|e| format_error(path, format!("expected a manifest of RelBench, found: {e}")))
}

fn check_version(path: &Path, found: Option<u64>) -> Result<(), DataError> {
    match found {
        None | Some(VERSION) => Ok(()),
        Some(found) => {
            let (path, found) = (path.into(), found.to_string());
            Err(DataError::Version { path, found, expected: VERSION as u32 })
        }
    }
}

/// Names of the tasks: folders with a manifest, sorted.
fn task_names(dir: &Path) -> Result<Vec<String>, DataError> {
    let mut names = vec![];
    if !dir.exists() {
        return Ok(names);
    }
    for entry in std::fs::read_dir(dir).map_err(|e| io_error(dir, e))? {
        let path = entry.map_err(|e| io_error(dir, e))?.path();
        if path.join(MANIFEST).exists()
            && let Some(name) = path.file_name()
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn read_table(
    dir: &Path,
    yaml: &Path,
    name: String,
    entry: TableEntry,
    extension: &DatabaseExtension,
    options: &DatabaseOptions,
    kinds_until: Option<i64>,
) -> Result<DatabaseTable, DataError> {
    let path = inside(dir, yaml, &format!("db/{name}.parquet"))?;
    let fkeys = entry.fkeys.unwrap_or_default().into_iter();
    let foreign_keys = fkeys.map(|(column, table)| ForeignKey { columns: vec![column], table });
    let mut spec = TableSpec {
        primary_key: entry.pkey.into_iter().collect(),
        time_column: entry.time_col,
        foreign_keys: foreign_keys.collect(),
        name: name.clone(),
        ..TableSpec::default()
    };
    let more = extension.tables.get(&name);
    if let Some(more) = more {
        spec.kinds = more.kinds.clone();
        spec.lenient_key = more.lenient_key;
        if let Some(key) = &more.primary_key {
            spec.primary_key = key.clone();
        }
        let keys = more.foreign_keys.iter();
        spec.foreign_keys.extend(
            keys.map(|k| ForeignKey { columns: k.columns.clone(), table: k.table.clone() }),
        );
    }
    spec.retain_keys(options);
    let kind = |column: &str| spec.kind(column, options);
    let mut columns = read_table_file(&path, &name, options, &kind)?;
    if more.is_some_and(|m| m.original_keys) {
        // Keys in `db` are numbers of rows, as RelBench requires.
        let keys = inside(dir, yaml, &format!("{KEYS}/{name}.parquet"))?;
        let key = |_: &str| Some(ColumnKind::Key);
        for original in read_table_file(&keys, &name, options, &key)? {
            let Some(column) = columns.iter_mut().find(|c| c.name == original.name) else {
                let why = format!(
                    "column `{}`: expected a column of `db/{name}.parquet`, found none of this name; remove the file and `original_keys` in `{MANIFEST}`",
                    original.name
                );
                return Err(format_error(&keys, why));
            };
            let (rows, found) = (column.values.len(), original.values.len());
            if rows != found {
                let why = format!(
                    "expected {rows} rows as in `db/{name}.parquet`, found {found}; remove the file and `original_keys` in `{MANIFEST}`"
                );
                return Err(format_error(&keys, why));
            }
            *column = original;
        }
    }
    spec.table(columns, options, kinds_until).map_err(|e| e.in_file(&path))
}

/// Reads a task; `None` if its tables are not selected.
fn read_task(
    folder: &Path,
    db: &Database,
    name: String,
    renumbered: &BTreeSet<String>,
    options: &DatabaseOptions,
) -> Result<Option<DatabaseTask>, DataError> {
    let yaml = folder.join(MANIFEST);
    let manifest: TaskManifest = read_yaml(&yaml)?;
    check_version(&yaml, manifest.manifest_version)?;
    let required = |what: &str, value: Option<String>| {
        value.ok_or_else(|| {
            let why = format!("expected an entry `{what}` for this type of task, found none");
            format_error(&yaml, why)
        })
    };
    let recommends = manifest.task_type == TaskType::Recommendation;
    let (entity_table, entity_column) = match recommends {
        true => (("src_entity_table", manifest.src_entity_table), manifest.src_entity_col),
        false => (("entity_table", manifest.entity_table), manifest.entity_col),
    };
    let entity_table = required(entity_table.0, entity_table.1)?;
    let destination = match recommends {
        true => Some(Destination {
            table: required("dst_entity_table", manifest.dst_entity_table)?,
            column: required("dst_entity_col", manifest.dst_entity_col)?,
            k: manifest.eval_k.unwrap_or(10),
        }),
        false => None,
    };
    let has = |table: &str| db.table(table).is_ok();
    let selected = has(&entity_table) && destination.as_ref().is_none_or(|d| has(&d.table));
    if !selected && options.tables.is_some() {
        return Ok(None);
    }
    let table = db.table(&entity_table).map_err(|e| e.in_file(&yaml))?;
    // An autocomplete task takes its columns from the entity table.
    let key = table.primary_key().first().cloned();
    let entity_column = match entity_column.or(key) {
        Some(column) => column,
        None => required("entity_col", None)?,
    };
    let target_column = match recommends {
        true => manifest.target_col.unwrap_or_default(),
        false => required("target_col", manifest.target_col)?,
    };
    let time_column = manifest.time_col.or_else(|| match manifest.kind {
        TaskKind::Autocomplete => table.time_column().map(str::to_owned),
        _ => None,
    });
    let mut task = DatabaseTask::new(
        manifest.name.unwrap_or(name),
        manifest.task_type,
        entity_table,
        entity_column,
        target_column,
    );
    task.kind = manifest.burn_gnn_kind.unwrap_or(manifest.kind);
    task.description = manifest.description.unwrap_or_default();
    task.time_column = time_column.unwrap_or_default();
    task.destination = destination;
    task.remove_columns = manifest.remove_columns.unwrap_or_default();
    task.num_eval_timestamps = manifest.num_eval_timestamps.unwrap_or(1);
    task.sql = manifest.sql;
    if let Some(text) = manifest.timedelta {
        let delta = timedelta(&text).ok_or_else(|| {
            let found = cut(&text);
            let why = format!(
                "timedelta: expected a duration such as `30 days` or `12 hours`, found `{found}`"
            );
            format_error(&yaml, why)
        })?;
        task.timedelta = Some(delta);
    }
    for part in Part::ALL {
        let path = folder.join(format!("{part}.parquet"));
        if !path.exists() {
            let why = format!(
                "expected the labels in this file, found none; write them with RelBench (`load_task(name, regenerate=True).get_table(\"{part}\").df.to_parquet(…)`), or open the database with `DatabaseOptions::without_tasks`"
            );
            return Err(format_error(&path, why));
        }
        let reader = label_reader(db, &task, renumbered, options).map_err(|e| e.in_file(&yaml))?;
        let rows = reader.read(&path, part)?;
        *task.rows_mut(part) = rows;
    }
    Ok(Some(task))
}

/// Parses a duration in pandas' notation, such as `60 days`, `1 day 02:00:00` or `90min`, to microseconds.
fn timedelta(text: &str) -> Option<i64> {
    let mut total = 0i64;
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(clock) = clock(rest) {
            return total.checked_add(clock);
        }
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: i64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        const SECOND: i64 = 1_000_000;
        let unit = match &rest[..letters] {
            "W" | "w" | "week" | "weeks" => 7 * 86_400 * SECOND,
            "D" | "d" | "day" | "days" => 86_400 * SECOND,
            "H" | "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * SECOND,
            "T" | "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
            "S" | "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
            "L" | "ms" | "milli" | "millis" | "millisecond" | "milliseconds" => 1000,
            "U" | "us" | "micro" | "micros" | "microsecond" | "microseconds" => 1,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = rest[letters..].trim_start().trim_start_matches([',', '+']).trim_start();
    }
    (!text.trim().is_empty()).then_some(total)
}

/// Parses `HH:MM:SS` with an optional fraction to microseconds.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hours, minutes) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let seconds: f64 = parts.next().unwrap_or("0").parse().ok()?;
    let whole =
        parts.next().is_none() && (0..60).contains(&minutes) && (0.0..60.0).contains(&seconds);
    let minutes = hours.checked_mul(60)?.checked_add(minutes)?;
    (whole && hours >= 0)
        .then(|| minutes.checked_mul(60_000_000)?.checked_add((seconds * 1e6).round() as i64))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_pandas() {
        const DAY: i64 = 86_400_000_000;
        for (text, value) in [
            ("60 days", Some(60 * DAY)),
            ("1 day", Some(DAY)),
            ("30 days 00:00:00", Some(30 * DAY)),
            ("1 days 02:30:00.5", Some(DAY + 9_000_500_000)),
            ("90min", Some(5_400_000_000)),
            ("1 week, 2 hours", Some(7 * DAY + 7_200_000_000)),
            ("7 us", Some(7)),
            ("", None),
            ("days", None),
            ("5", None),
            ("5 parsecs", None),
            ("99999999999999 days", None),
            ("1:99:00", None),
        ] {
            assert_eq!(timedelta(text), value, "{text}");
        }
    }
}
