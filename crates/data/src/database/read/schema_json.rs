//! Reads databases of CSV or Parquet files that a `schema.json` describes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Texts;
use serde::Deserialize;

use super::assemble::TableSpec;
use super::description::{Timestamps, label_reader, read_tables};
use super::table_file::read_table_file;
use crate::database::column::{ColumnKind, ColumnValues, DatabaseColumn};
use crate::database::database::Database;
use crate::database::options::DatabaseOptions;
use crate::database::table::{DatabaseTable, ForeignKey};
use crate::database::task::{DatabaseTask, Destination, Part, TaskKind, TaskType};
use crate::files::{cut, format_error, inside, read_json, same_count};

/// File name of the description.
pub(super) const SCHEMA: &str = "schema.json";

#[derive(Deserialize)]
struct Schema {
    #[serde(default, alias = "name")]
    database: String,
    #[serde(default)]
    description: String,
    tables: BTreeMap<String, TableEntry>,
    val_timestamp: Option<String>,
    test_timestamp: Option<String>,
    #[serde(default)]
    tasks: BTreeMap<String, TaskEntry>,
}

#[derive(Deserialize)]
struct TableEntry {
    file: Option<String>,
    rows: Option<u64>,
    primary_key: Option<Names>,
    time_column: Option<String>,
    foreign_keys: Option<Keys>,
    #[serde(default)]
    columns: BTreeMap<String, ColumnEntry>,
}

/// One column or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Keys {
    /// Column to table.
    ByColumn(BTreeMap<String, String>),
    List(Vec<KeyEntry>),
}

#[derive(Deserialize)]
struct KeyEntry {
    columns: Names,
    table: String,
}

#[derive(Deserialize)]
struct ColumnEntry {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct TaskEntry {
    entity_table: String,
    entity_column: String,
    #[serde(default)]
    time_column: String,
    #[serde(default)]
    target_column: String,
    #[serde(alias = "task_type")]
    r#type: String,
    kind: Option<TaskKind>,
    #[serde(default, alias = "rule")]
    description: String,
    horizon_days: Option<i64>,
    destination: Option<DestinationEntry>,
    #[serde(default)]
    remove_columns: Vec<(String, String)>,
    num_eval_timestamps: Option<usize>,
    #[serde(default)]
    files: BTreeMap<Part, String>,
    #[serde(default)]
    rows: BTreeMap<Part, u64>,
}

#[derive(Deserialize)]
struct DestinationEntry {
    table: String,
    column: String,
    k: usize,
}

impl From<Names> for Vec<String> {
    fn from(names: Names) -> Self {
        match names {
            Names::One(name) => vec![name],
            Names::Several(names) => names,
        }
    }
}

impl From<Keys> for Vec<ForeignKey> {
    fn from(keys: Keys) -> Self {
        match keys {
            Keys::ByColumn(keys) => keys
                .into_iter()
                .map(|(column, table)| ForeignKey { columns: vec![column], table })
                .collect(),
            Keys::List(keys) => keys
                .into_iter()
                .map(|k| ForeignKey { columns: k.columns.into(), table: k.table })
                .collect(),
        }
    }
}

/// Reads a database from a folder with a `schema.json`.
pub(super) fn read_schema(dir: &Path, options: &DatabaseOptions) -> Result<Database, DataError> {
    let json = dir.join(SCHEMA);
    let schema: Schema = read_json(&json)?;
    let times = Timestamps::parse(&json, [&schema.val_timestamp, &schema.test_timestamp])?;
    let mut tables = read_tables(&json, options, schema.tables, |name, entry| {
        read_table(dir, &json, name, entry, options, times.kinds_until())
    })?;
    unify_key_types(&mut tables)?;
    let mut db = Database::new(schema.database, tables)
        .map_err(|e| e.in_file(&json))?
        .with_timestamps(times.val, times.test)
        .with_description(schema.description);
    if !options.tasks {
        return Ok(db);
    }
    for (name, entry) in schema.tasks {
        let has = |table: &str| db.table(table).is_ok();
        let destination = entry.destination.as_ref();
        let selected = has(&entry.entity_table) && destination.is_none_or(|d| has(&d.table));
        if !selected && options.tables.is_some() {
            continue;
        }
        let task = read_task(dir, &json, &db, name, entry, options)?;
        db = db.with_task(task).map_err(|e| e.in_file(&json))?;
    }
    Ok(db)
}

fn read_table(
    dir: &Path,
    json: &Path,
    name: String,
    entry: TableEntry,
    options: &DatabaseOptions,
    kinds_until: Option<i64>,
) -> Result<DatabaseTable, DataError> {
    let file = entry.file.unwrap_or_else(|| format!("tables/{name}.csv"));
    let path = inside(dir, json, &file)?;
    let mut spec = TableSpec {
        primary_key: entry.primary_key.map_or(vec![], Into::into),
        time_column: entry.time_column,
        foreign_keys: entry.foreign_keys.map_or(vec![], Into::into),
        name,
        ..TableSpec::default()
    };
    for (column, about) in entry.columns {
        if let Some(kind) = about.kind {
            let Some(kind) = kind_of(&kind) else {
                let why = format!(
                    "table `{}`, column `{column}`: expected a kind such as `number`, `category`, `text`, `time`, `boolean` or `key`, found `{}`",
                    spec.name,
                    cut(&kind)
                );
                return Err(format_error(json, why));
            };
            spec.kinds.insert(column, kind);
        }
    }
    spec.retain_keys(options);
    let kind = |column: &str| spec.kind(column, options);
    let columns = read_table_file(&path, &spec.name, options, &kind)?;
    let table = spec.table(columns, options, kinds_until).map_err(|e| e.in_file(&path))?;
    if let (Some(rows), None) = (entry.rows, options.max_rows) {
        same_count(&path, "rows", rows, table.rows())?;
    }
    Ok(table)
}

fn kind_of(name: &str) -> Option<ColumnKind> {
    Some(match name {
        "key" | "id" | "primary_key" | "foreign_key" => ColumnKind::Key,
        "number" | "int" | "integer" | "float" => ColumnKind::Number,
        "category" | "categorical" => ColumnKind::Category,
        "text" => ColumnKind::Text,
        "time" | "date" | "datetime" | "timestamp" => ColumnKind::Time,
        "boolean" | "bool" => ColumnKind::Boolean,
        "list" => ColumnKind::List,
        "vector" | "embedding" => ColumnKind::Vector,
        _ => return None,
    })
}

/// Fields of CSV files have no type: a key whose values are all numbers in one file may contain texts in another. Where one
/// side of a foreign key contains texts, the other becomes texts.
fn unify_key_types(tables: &mut [DatabaseTable]) -> Result<(), DataError> {
    loop {
        let mut changes: Vec<(usize, String)> = vec![];
        for (t, table) in tables.iter().enumerate() {
            for key in table.foreign_keys() {
                let Some(p) = tables.iter().position(|t| t.name() == key.table) else { continue };
                for (own, other) in key.columns.iter().zip(tables[p].primary_key()) {
                    let values = [table.column(own)?.values(), tables[p].column(other)?.values()];
                    match values {
                        [ColumnValues::Ints(_), ColumnValues::Texts(_)] => {
                            changes.push((t, own.clone()));
                        }
                        [ColumnValues::Texts(_), ColumnValues::Ints(_)] => {
                            changes.push((p, other.clone()));
                        }
                        _ => {}
                    }
                }
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        for (t, name) in changes {
            let column = tables[t].column(&name)?;
            let ColumnValues::Ints(ints) = column.values() else { continue };
            let texts: Texts = ints.iter().map(i64::to_string).collect();
            let mut new = DatabaseColumn::new(&name, column.kind(), ColumnValues::Texts(texts))?;
            if let Some(missing) = column.missing() {
                new = new.with_missing(missing.to_vec())?;
            }
            tables[t].replace_column(new);
        }
    }
}

fn read_task(
    dir: &Path,
    json: &Path,
    db: &Database,
    name: String,
    entry: TaskEntry,
    options: &DatabaseOptions,
) -> Result<DatabaseTask, DataError> {
    let normal = entry.r#type.to_lowercase().replace([' ', '-'], "_");
    let task_type = match normal.as_str() {
        "regression" => TaskType::Regression,
        "binary_classification" => TaskType::BinaryClassification,
        "multiclass_classification" | "multi_class_classification" => {
            TaskType::MulticlassClassification
        }
        "multilabel_classification" | "multi_label_classification" => {
            TaskType::MultilabelClassification
        }
        "recommendation" | "link_prediction" => TaskType::Recommendation,
        _ => {
            let found = cut(&entry.r#type);
            let why = format!(
                "task `{name}`, type: expected `regression`, `binary_classification`, `multiclass_classification`, `multilabel_classification` or `recommendation`, found `{found}`"
            );
            return Err(format_error(json, why));
        }
    };
    const DAY: i64 = 86_400_000_000;
    let mut task = DatabaseTask::new(
        &name,
        task_type,
        entry.entity_table,
        entry.entity_column,
        entry.target_column,
    );
    task.description = entry.description;
    task.kind = entry.kind.unwrap_or_default();
    task.time_column = entry.time_column;
    let micros = |days: i64| {
        days.checked_mul(DAY).filter(|micros| *micros >= 0).ok_or_else(|| {
            let most = i64::MAX / DAY;
            let why = format!(
                "task `{name}`, horizon_days: expected a number of days from 0 to {most}, found {days}; correct it"
            );
            format_error(json, why)
        })
    };
    task.timedelta = entry.horizon_days.map(micros).transpose()?;
    task.remove_columns = entry.remove_columns;
    task.destination =
        entry.destination.map(|d| Destination { table: d.table, column: d.column, k: d.k });
    if (task_type == TaskType::Recommendation) != task.destination.is_some() {
        let why = format!(
            "task `{name}`: expected a `destination` for a recommendation, and for no other type"
        );
        return Err(format_error(json, why));
    }
    for part in Part::ALL {
        let file = entry.files.get(&part).cloned();
        let file = file.unwrap_or_else(|| format!("tasks/{name}/{part}.csv"));
        let path = inside(dir, json, &file)?;
        let reader = label_reader(db, &task, &BTreeSet::new(), options);
        let rows = reader.map_err(|e| e.in_file(json))?.read(&path, part)?;
        if let Some(&expected) = entry.rows.get(&part) {
            same_count(&path, "rows", expected, rows.len() + rows.dropped)?;
        }
        *task.rows_mut(part) = rows;
    }
    let distinct = task.test.times.iter().collect::<BTreeSet<_>>().len();
    task.num_eval_timestamps = entry.num_eval_timestamps.unwrap_or(distinct.max(1));
    Ok(task)
}
