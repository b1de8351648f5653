//! Code shared by the readers of `manifest.yaml` and `schema.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burn_gnn_files::DataError;
use rayon::prelude::*;

use super::labels::LabelReader;
use crate::database::database::Database;
use crate::database::options::DatabaseOptions;
use crate::database::references::RowFinder;
use crate::database::table::DatabaseTable;
use crate::database::task::DatabaseTask;
use crate::files::{cut, format_error};
use crate::tables::text::time::microseconds;

/// The times at which validation and test begin.
pub(super) struct Timestamps {
    pub(super) val: Option<i64>,
    pub(super) test: Option<i64>,
}

impl Timestamps {
    /// Parses the entries `val_timestamp` and `test_timestamp` of a description.
    pub(super) fn parse(path: &Path, [val, test]: [&Option<String>; 2]) -> Result<Self, DataError> {
        let parse = |name: &str, text: &Option<String>| {
            let Some(text) = text else { return Ok(None) };
            let time = microseconds(text.as_bytes()).ok_or_else(|| {
                let found = cut(text);
                format_error(path, format!("{name}: expected a date or time of ISO 8601, such as 2010-01-01, found `{found}`"))
            });
            time.map(Some)
        };
        let times =
            Self { val: parse("val_timestamp", val)?, test: parse("test_timestamp", test)? };
        if let (Some(val_text), Some(test_text)) = (val, test)
            && times.val > times.test
        {
            let (val, test) = (cut(val_text), cut(test_text));
            let why = format!(
                "val_timestamp: expected a time up to `test_timestamp`, {test}, found {val}; exchange the two"
            );
            return Err(format_error(path, why));
        }
        Ok(times)
    }

    /// The time up to which rows determine kinds, so that rows of validation and test do not.
    pub(super) fn kinds_until(&self) -> Option<i64> {
        self.val.or(self.test)
    }
}

/// Reads the tables that the options select, in parallel.
pub(super) fn read_tables<E: Send>(
    path: &Path,
    options: &DatabaseOptions,
    entries: BTreeMap<String, E>,
    read: impl Fn(String, E) -> Result<DatabaseTable, DataError> + Sync,
) -> Result<Vec<DatabaseTable>, DataError> {
    check_table_names(path, options, &entries.keys().collect())?;
    let selected = |name: &String| options.tables.as_ref().is_none_or(|t| t.contains(name));
    let entries: Vec<_> = entries.into_iter().filter(|(name, _)| selected(name)).collect();
    let tables: Vec<_> = entries.into_par_iter().map(|(name, entry)| read(name, entry)).collect();
    tables.into_iter().collect()
}

/// Returns an error if the options name a table that is not described.
fn check_table_names(
    path: &Path,
    options: &DatabaseOptions,
    known: &BTreeSet<&String>,
) -> Result<(), DataError> {
    let by_kind = options.kinds.keys().map(|(table, _)| table);
    let ignored = options.ignored.iter().map(|(table, _)| table);
    let mut named = options.tables.iter().flatten().chain(by_kind).chain(ignored);
    let Some(name) = named.find(|name| !known.contains(name)) else { return Ok(()) };
    let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    let why = format!(
        "`DatabaseOptions`: expected one of the tables {}, found `{name}`; correct the name",
        known.join(", ")
    );
    Err(format_error(path, why))
}

/// The reader of the label tables of a task. In `by_number` are tables whose rows are referred to by their numbers.
pub(super) fn label_reader<'a>(
    db: &'a Database,
    task: &'a DatabaseTask,
    by_number: &BTreeSet<String>,
    options: &'a DatabaseOptions,
) -> Result<LabelReader<'a>, DataError> {
    let finder = |name: &str| {
        let table = db.table(name)?;
        if by_number.contains(name) {
            Ok(RowFinder::by_number(table))
        } else {
            RowFinder::new(table)
        }
    };
    let destinations = task.destination.as_ref().map(|d| finder(&d.table)).transpose()?;
    Ok(LabelReader { entities: finder(&task.entity_table)?, destinations, task, options })
}
