//! Suggests a `schema.json` for a folder of tables.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::assemble::TableSpec;
use super::schema_json::SCHEMA;
use super::table_file::read_table_file;
use crate::database::column::ColumnValues;
use crate::database::options::DatabaseOptions;
use crate::database::references::{KeyIndex, RowFinder};
use crate::database::table::{DatabaseTable, NEVER};
use crate::files::{format_error, io_error};
use crate::tables::text::time::iso_text;

/// Share of the values of a foreign key that are in the table to which it refers.
const FOUND: f64 = 0.9;
/// Shares of the rows before the validation time and before the test time.
const SHARES: [f64; 2] = [0.8, 0.9];
/// Parts of the names of columns with the time at which a row appears; a date of birth is none.
const TIME_NAMES: [&str; 6] = ["date", "time", "created", "when", "day", "_at"];

/// Suggests a `schema.json` for the CSV and Parquet files of a folder, or of its folder `tables`: a table per file, its
/// keys, its time column, and the times at which validation and test begin. It is a guess by names and values, to be
/// checked and completed with tasks by a person; [`Database::open`](crate::Database::open) reads the result.
///
/// * A **primary key** is a column without missing or repeated values that is called `id`, or whose name ends with the name
///   of the table (or its singular) and `id` or `key`; or the first column, if its name ends with `id` or `key`.
/// * A **foreign key** is a column whose name ends with that of the primary key of another table, or with the name of that
///   table and `id`, and of whose values at least nine tenths are in that table.
/// * A **time column** is the first column of times whose name contains `date`, `time`, `day`, `created` or `when`, or ends
///   with `_at`.
/// * Validation begins after 80 %, test after 90 % of all rows with a time, at midnight.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// std::fs::write(dir.path().join("drivers.csv"), "driverId,name\n1,Ada\n2,Bo\n").unwrap();
/// std::fs::write(dir.path().join("results.csv"), "driverId,date\n2,2004-03-07\n2,2004-05-07\n").unwrap();
/// let schema = burn_gnn_data::suggest_schema(dir.path())?;
/// std::fs::write(dir.path().join("schema.json"), schema).unwrap();
/// let db = burn_gnn_data::Database::open(dir.path())?;
/// assert_eq!(db.references("results", 0)?.rows, [1, 1]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Errors
/// [`DataError::Format`] if there is no such file, and for two files of one table; those of reading the files.
///
/// # Cost
/// Reads all files.
pub fn suggest_schema(path: impl AsRef<Path>) -> Result<String, DataError> {
    let dir = path.as_ref();
    let mut files = table_files(dir, "")?;
    if files.is_empty() && dir.join("tables").is_dir() {
        files = table_files(&dir.join("tables"), "tables/")?;
    }
    if files.is_empty() {
        let why =
            "expected CSV or Parquet files in the folder or in its folder `tables`, found none";
        return Err(format_error(dir, why));
    }
    let options = DatabaseOptions::default();
    let tables: Vec<_> = files
        .par_iter()
        .map(|(name, file)| {
            let spec = TableSpec { name: name.clone(), ..TableSpec::default() };
            let path = dir.join(file);
            let columns = read_table_file(&path, name, &options, &|_| None)?;
            let table = spec.table(columns, &options, None).map_err(|e| e.in_file(&path))?;
            with_key(table)
        })
        .collect();
    let tables = tables.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (mut entries, mut times) = (Map::new(), vec![]);
    for (table, file) in tables.iter().zip(files.values()) {
        let mut entry = Map::new();
        entry.insert("file".into(), json!(file));
        let key = table.primary_key().first();
        entry.insert("primary_key".into(), json!(key));
        let time = time_column(table);
        entry.insert("time_column".into(), json!(time));
        if let Some(name) = time {
            let table = table.clone().with_time_column(name)?;
            times.extend(table.row_times().into_iter().filter(|&t| t != NEVER));
        }
        let mut keys = Map::new();
        for column in table.columns().iter().filter(|c| Some(c.name()) != key.map(String::as_str)) {
            if let Some(parent) = parent(table, column.name(), &tables)? {
                keys.insert(column.name().to_owned(), json!(parent));
            }
        }
        entry.insert("foreign_keys".into(), Value::Object(keys));
        entries.insert(table.name().to_owned(), Value::Object(entry));
    }
    let name = dir.file_name().map_or("database".into(), |n| n.to_string_lossy().into_owned());
    let mut schema = Map::new();
    schema.insert("database".into(), json!(name));
    times.sort_unstable();
    for (key, share) in ["val_timestamp", "test_timestamp"].into_iter().zip(SHARES) {
        const DAY: i64 = 86_400_000_000;
        if let Some(&time) = times.get((times.len() as f64 * share) as usize) {
            schema.insert(key.into(), json!(iso_text(time.div_euclid(DAY).saturating_mul(DAY))));
        }
    }
    schema.insert("tables".into(), Value::Object(entries));
    schema.insert("tasks".into(), json!({}));
    let text = serde_json::to_string_pretty(&schema);
    text.map_err(|e| format_error(&dir.join(SCHEMA), e.to_string()))
}

/// Files of tables by the names of the tables; `prefix` is the path of the folder.
fn table_files(dir: &Path, prefix: &str) -> Result<BTreeMap<String, String>, DataError> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(|e| io_error(dir, e))? {
        let path = entry.map_err(|e| io_error(dir, e))?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()) else { continue };
        let table = [".csv", ".csv.gz", ".parquet"].iter().find_map(|end| name.strip_suffix(end));
        let Some(table) = table.filter(|t| !t.is_empty() && !t.starts_with('.')) else { continue };
        if let Some(other) = files.insert(table.to_owned(), format!("{prefix}{name}")) {
            let why = format!(
                "table `{table}`: expected one file, found `{other}` and `{name}`; remove one"
            );
            return Err(format_error(dir, why));
        }
    }
    Ok(files)
}

/// A name in lower case, without marks between words.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The name of a table, and its singular.
fn singulars(table: &str) -> Vec<String> {
    let name = plain(table);
    let singular = match () {
        () if name.ends_with("ies") => format!("{}y", &name[..name.len() - 3]),
        () if name.ends_with('s') => name[..name.len() - 1].to_owned(),
        () => return vec![name],
    };
    vec![name, singular]
}

/// Whether a column is named as the key of a table.
fn is_key_of(column: &str, table: &str) -> bool {
    let column = plain(column);
    singulars(table).iter().any(|t| {
        ["id", "key"]
            .iter()
            .any(|end| column.strip_suffix(end).is_some_and(|c| c.ends_with(t.as_str())))
    })
}

/// The table with the primary key that its names and values suggest.
fn with_key(table: DatabaseTable) -> Result<DatabaseTable, DataError> {
    let named = |name: &str| plain(name) == "id" || is_key_of(name, table.name());
    let first = table.columns().first().map(|c| c.name());
    let first = first.filter(|n| plain(n).ends_with("id") || plain(n).ends_with("key"));
    let names = table.columns().iter().map(|c| c.name()).filter(|n| named(n)).chain(first);
    for name in names {
        let column = table.column(name)?;
        let keyed = matches!(column.values(), ColumnValues::Ints(_) | ColumnValues::Texts(_))
            && column.missing().is_none();
        if keyed {
            let keyed = table.clone().with_primary_key([name])?;
            if KeyIndex::check(&keyed).is_ok() {
                return Ok(keyed);
            }
        }
    }
    Ok(table)
}

fn time_column(table: &DatabaseTable) -> Option<&str> {
    let named = |name: &str| {
        let name = name.to_lowercase();
        let (ends, contains): (Vec<&str>, Vec<&str>) =
            TIME_NAMES.iter().copied().partition(|n| n.starts_with('_'));
        let birth = name.contains("birth") || name.contains("born");
        let found =
            ends.iter().any(|end| name.ends_with(end)) || contains.iter().any(|n| name.contains(n));
        found && !birth
    };
    let times = table.columns().iter().filter(|c| matches!(c.values(), ColumnValues::Times(_)));
    times.map(|c| c.name()).find(|n| named(n))
}

/// The table to which a column refers, by its name and its values.
fn parent<'a>(
    table: &DatabaseTable,
    column: &str,
    tables: &'a [DatabaseTable],
) -> Result<Option<&'a str>, DataError> {
    let own = table.column(column)?;
    let mut best: Option<(usize, &str)> = None;
    for other in tables {
        let [key] = other.primary_key() else { continue };
        // The longest name is the most specific: `driverStandingsId` is no `standingsId`.
        let by_key = plain(key) != "id" && plain(column).ends_with(&plain(key));
        let named = if by_key {
            plain(key).len() + 1
        } else if is_key_of(column, other.name()) {
            plain(other.name()).len()
        } else {
            continue;
        };
        if best.is_some_and(|(length, _)| length >= named) {
            continue;
        }
        let mut child = DatabaseTable::new("child", [own.clone()])?;
        // Whole numbers that are stored as floats.
        let Ok(keyed) = child.clone().with_primary_key([column]) else { continue };
        child = keyed;
        let Ok(rows) = RowFinder::new(other)?.rows(child.column(column)?.values()) else {
            continue;
        };
        let present = |row: &usize| !own.is_missing(*row);
        let count = (0..own.len()).filter(present).count();
        let found = (0..own.len()).filter(present).filter(|&row| rows[row].is_some()).count();
        if count > 0 && found as f64 >= FOUND * count as f64 {
            best = Some((named, other.name()));
        }
    }
    Ok(best.map(|(_, name)| name))
}
