//! Summarises a database: tables, kinds, keys, times, missing shares, dangling keys.

use std::fmt;

use burn_gnn_files::DataError;
use hashbrown::HashSet;
use rayon::prelude::*;
use serde::Serialize;

use super::column::{ColumnKind, ColumnValues, DatabaseColumn};
use super::database::Database;
use super::references::{KeyIndex, References};
use super::table::{ALWAYS, DatabaseTable, NEVER};
use super::task::{DatabaseTask, LATEST, Part, Targets, TaskType};
use crate::tables::text::time::iso_text;

/// What a database contains. `Display` prints a table of columns for each table; `Serialize` makes it JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DatabaseSummary {
    /// Name.
    pub name: String,
    /// Time at which validation begins, as a text of ISO 8601.
    pub val_timestamp: Option<String>,
    /// Time at which test begins.
    pub test_timestamp: Option<String>,
    /// Tables, sorted by name.
    pub tables: Vec<TableSummary>,
    /// Tasks, sorted by name.
    pub tasks: Vec<TaskSummary>,
    /// Rows of all tables.
    pub rows: usize,
    /// Bytes of all columns in memory.
    pub bytes: usize,
}

/// What a table contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TableSummary {
    /// Name.
    pub name: String,
    /// Number of rows.
    pub rows: usize,
    /// Columns of the primary key.
    pub primary_key: Vec<String>,
    /// Rows whose primary key is missing; only in a table that accepts them.
    pub missing_keys: usize,
    /// Rows whose primary key is that of an earlier row; only in a table that accepts them.
    pub repeated_keys: usize,
    /// Time column.
    pub time_column: Option<String>,
    /// First and last time of a row, as texts of ISO 8601.
    pub time_range: Option<(String, String)>,
    /// Rows whose time is missing, which are never visible.
    pub rows_without_time: usize,
    /// Columns, in the order of the table.
    pub columns: Vec<ColumnSummary>,
    /// Foreign keys.
    pub foreign_keys: Vec<ForeignKeySummary>,
}

/// What a column contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ColumnSummary {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: ColumnKind,
    /// Number of missing values.
    pub missing: usize,
    /// Missing values divided by rows; 0 without rows.
    pub missing_share: f64,
    /// Number of distinct values that are not missing; `None` for floats, lists and vectors, and above
    /// [`MOST_DISTINCT`](Self::MOST_DISTINCT).
    pub distinct: Option<usize>,
    /// Whether all values that are not missing are equal. Rows of such a column differ only in which values are
    /// missing.
    pub constant: bool,
    /// The smallest and the largest value of numbers and times, as texts.
    pub range: Option<(String, String)>,
}

impl ColumnSummary {
    /// Most distinct values that are counted.
    pub const MOST_DISTINCT: usize = 10_000;
}

/// The references of a foreign key.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ForeignKeySummary {
    /// Columns.
    pub columns: Vec<String>,
    /// The table to which they refer.
    pub table: String,
    /// Rows in which a part of the key is missing.
    pub missing: usize,
    /// Dangling keys: rows whose key is not in the table.
    pub unknown: usize,
    /// The first of them, from 1.
    pub first_unknown_row: Option<usize>,
}

/// What a task contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskSummary {
    /// Name.
    pub name: String,
    /// What is predicted.
    pub task_type: TaskType,
    /// Table of the entities.
    pub entity_table: String,
    /// Default metric.
    pub metric: &'static str,
    /// Training, validation and test rows.
    pub parts: Vec<PartSummary>,
}

/// What a part of a task contains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartSummary {
    /// Part.
    pub part: Part,
    /// Number of rows.
    pub rows: usize,
    /// Label rows that were dropped, because their entity is not in its table.
    pub dropped: usize,
    /// First and last seed time, as texts of ISO 8601.
    pub time_range: Option<(String, String)>,
    /// Mean of the targets that are not missing: of classes and values, of all labels, of the lengths of lists.
    pub target_mean: Option<f64>,
}

impl Database {
    /// Summarises tables, kinds, keys, time ranges, missing shares and dangling keys.
    ///
    /// ```
    /// use burn_gnn_data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
    /// let id = |name, ids| DatabaseColumn::new(name, ColumnKind::Key, ColumnValues::Ints(ids));
    /// let people = DatabaseTable::new("people", [id("id", vec![1, 2])?])?.with_primary_key(["id"])?;
    /// let calls = DatabaseTable::new("calls", [id("from", vec![2, 2, 5])?])?.with_foreign_key(["from"], "people")?;
    /// let summary = Database::new("phone", [people, calls])?.inspect()?;
    /// assert_eq!(summary.tables[0].foreign_keys[0].unknown, 1);
    /// assert!(summary.to_string().contains("1 unknown, first in row 3"));
    /// # Ok::<(), burn_gnn_data::DataError>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`references`](Self::references), which do not occur for the foreign keys of a database.
    ///
    /// # Cost
    /// One pass over all columns, tables in parallel.
    pub fn inspect(&self) -> Result<DatabaseSummary, DataError> {
        let tables: Vec<_> = self.tables().par_iter().map(|t| table_summary(self, t)).collect();
        Ok(DatabaseSummary {
            name: self.name().to_owned(),
            val_timestamp: self.val_timestamp().map(iso_text),
            test_timestamp: self.test_timestamp().map(iso_text),
            tables: tables.into_iter().collect::<Result<_, _>>()?,
            tasks: self.tasks().iter().map(task_summary).collect(),
            rows: self.tables().iter().map(DatabaseTable::rows).sum(),
            bytes: self.bytes(),
        })
    }
}

fn table_summary(db: &Database, table: &DatabaseTable) -> Result<TableSummary, DataError> {
    let foreign_keys = table.foreign_keys().iter().enumerate().map(|(number, key)| {
        let References { missing, unknown, first_unknown, .. } =
            db.references(table.name(), number)?;
        Ok(ForeignKeySummary {
            columns: key.columns.clone(),
            table: key.table.clone(),
            missing,
            unknown,
            first_unknown_row: first_unknown.map(|row| row + 1),
        })
    });
    let keys = match table.has_lenient_key() && !table.primary_key().is_empty() {
        true => Some(KeyIndex::new(table)?),
        false => None,
    };
    let times = table.row_times();
    let without = times.iter().filter(|&&t| t == NEVER).count();
    Ok(TableSummary {
        name: table.name().to_owned(),
        rows: table.rows(),
        primary_key: table.primary_key().to_vec(),
        missing_keys: keys.as_ref().map_or(0, |k| k.missing),
        repeated_keys: keys.as_ref().map_or(0, |k| k.repeated),
        time_column: table.time_column().map(str::to_owned),
        time_range: time_range(times.iter().copied().filter(|&t| t != NEVER && t != ALWAYS)),
        rows_without_time: without,
        columns: table.columns().par_iter().map(column_summary).collect(),
        foreign_keys: foreign_keys.collect::<Result<_, DataError>>()?,
    })
}

fn time_range(times: impl Iterator<Item = i64> + Clone) -> Option<(String, String)> {
    Some((iso_text(times.clone().min()?), iso_text(times.max()?)))
}

fn column_summary(column: &DatabaseColumn) -> ColumnSummary {
    let rows = column.len();
    let present = || (0..rows).filter(|&row| !column.is_missing(row));
    fn range<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
        values.fold(None, |range, v| match range {
            None => Some((v, v)),
            Some((low, high)) => {
                Some((if v < low { v } else { low }, if v > high { v } else { high }))
            }
        })
    }
    fn distinct<T: Eq + std::hash::Hash>(values: impl Iterator<Item = T>) -> Option<usize> {
        let mut seen = HashSet::new();
        for value in values {
            if seen.insert(value) && seen.len() > ColumnSummary::MOST_DISTINCT {
                return None;
            }
        }
        Some(seen.len())
    }
    let (distinct, constant, range) = match column.values() {
        ColumnValues::Ints(v) => {
            let range = range(present().map(|row| v[row]));
            let texts = range.map(|(low, high)| (low.to_string(), high.to_string()));
            let number = texts.filter(|_| column.kind() == ColumnKind::Number);
            (distinct(present().map(|row| v[row])), range.is_none_or(|r| r.0 == r.1), number)
        }
        ColumnValues::Times(v) => {
            let range = range(present().map(|row| v[row]));
            let texts = range.map(|(low, high)| (iso_text(low), iso_text(high)));
            (distinct(present().map(|row| v[row])), range.is_none_or(|r| r.0 == r.1), texts)
        }
        ColumnValues::Floats(v) => {
            let range = range(present().map(|row| v[row]));
            let texts = range.map(|(low, high)| (low.to_string(), high.to_string()));
            (None, range.is_none_or(|r| r.0 == r.1), texts)
        }
        ColumnValues::Bools(v) => {
            let count = distinct(present().map(|row| v[row]));
            (count, count.is_some_and(|n| n < 2), None)
        }
        ColumnValues::Texts(v) => {
            let count = distinct(present().map(|row| v.get(row)));
            (count, count.is_some_and(|n| n < 2), None)
        }
        ColumnValues::Lists(_) => (None, false, None),
        ColumnValues::Vectors { .. } => (None, false, None),
    };
    let missing = column.missing_count();
    ColumnSummary {
        name: column.name().to_owned(),
        kind: column.kind(),
        missing,
        missing_share: if rows == 0 { 0.0 } else { missing as f64 / rows as f64 },
        distinct,
        constant,
        range,
    }
}

fn task_summary(task: &DatabaseTask) -> TaskSummary {
    let part = |part: Part| {
        let rows = task.rows(part);
        PartSummary {
            part,
            rows: rows.len(),
            dropped: rows.dropped,
            time_range: time_range(rows.times.iter().copied().filter(|&t| t != LATEST)),
            target_mean: target_mean(&rows.targets),
        }
    };
    TaskSummary {
        name: task.name.clone(),
        task_type: task.task_type,
        entity_table: task.entity_table.clone(),
        metric: task.metric(),
        parts: Part::ALL.map(part).into(),
    }
}

fn target_mean(targets: &Targets) -> Option<f64> {
    fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
        let (sum, count) = values.fold((0.0, 0usize), |(sum, count), v| (sum + v, count + 1));
        (count > 0).then(|| sum / count as f64)
    }
    match targets {
        Targets::Classes(v) => mean(v.iter().filter(|v| **v >= 0).map(|&v| v as f64)),
        Targets::Values(v) => mean(v.iter().copied().filter(|v| !v.is_nan())),
        Targets::Labels { values, .. } => {
            mean(values.iter().filter(|v| !v.is_nan()).map(|&v| f64::from(v)))
        }
        Targets::Lists(v) => mean(v.iter().map(|list| list.len() as f64)),
    }
}

impl fmt::Display for DatabaseSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use burn_gnn_graph::internal::readable_bytes;
        writeln!(
            f,
            "database `{}`: {} tables, {} rows, {} of columns",
            self.name,
            self.tables.len(),
            self.rows,
            readable_bytes(self.bytes)
        )?;
        let time = |time: &Option<String>| time.clone().unwrap_or_else(|| "not set".into());
        writeln!(
            f,
            "validation begins: {}; test begins: {}",
            time(&self.val_timestamp),
            time(&self.test_timestamp)
        )?;
        self.tables.iter().try_for_each(|table| write!(f, "\n{table}"))?;
        if !self.tasks.is_empty() {
            writeln!(f)?;
        }
        self.tasks.iter().try_for_each(|task| write!(f, "{task}"))
    }
}

impl fmt::Display for TableSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table `{}`: {} rows", self.name, self.rows)?;
        match self.primary_key.is_empty() {
            true => write!(f, ", no primary key")?,
            false => write!(f, ", primary key `{}`", self.primary_key.join("+"))?,
        }
        match (&self.time_column, &self.time_range) {
            (Some(column), Some((first, last))) => {
                write!(f, ", time `{column}` from {first} to {last}")?;
            }
            (Some(column), None) => write!(f, ", time `{column}`")?,
            (None, _) => write!(f, ", no time")?,
        }
        writeln!(f)?;
        let notes = [
            (self.missing_keys, "rows without a primary key"),
            (self.repeated_keys, "rows with the primary key of an earlier row"),
            (self.rows_without_time, "rows without a time, never visible"),
        ];
        for (count, what) in notes.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "  {count} {what}")?;
        }
        let longest = |of: &dyn Fn(&ColumnSummary) -> usize| self.columns.iter().map(of).max();
        let name = longest(&|c| c.name.chars().count()).unwrap_or(0);
        for c in &self.columns {
            write!(f, "  {:name$}  {:8}", c.name, c.kind.name())?;
            write!(f, "  {:>5.1} % missing", 100.0 * c.missing_share)?;
            if let Some(distinct) = c.distinct.filter(|_| c.kind != ColumnKind::Key) {
                write!(f, "  {distinct} distinct")?;
            }
            if let Some((low, high)) = &c.range {
                write!(f, "  {low} to {high}")?;
            }
            if c.constant && self.rows > 0 {
                write!(f, "  (one value)")?;
            }
            writeln!(f)?;
        }
        for key in &self.foreign_keys {
            write!(f, "  key `{}` -> `{}`: ", key.columns.join("+"), key.table)?;
            write!(f, "{} missing, {} unknown", key.missing, key.unknown)?;
            if let Some(row) = key.first_unknown_row {
                write!(f, ", first in row {row}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for TaskSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "task `{}`: {} of `{}`, metric {}",
            self.name, self.task_type, self.entity_table, self.metric
        )?;
        for p in &self.parts {
            write!(f, "  {:5}  {} rows", p.part.name(), p.rows)?;
            if let Some((first, last)) = &p.time_range {
                write!(f, "  {first} to {last}")?;
            }
            if let Some(mean) = p.target_mean {
                write!(f, "  target mean {mean:.4}")?;
            }
            if p.dropped > 0 {
                write!(f, "  {} dropped", p.dropped)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
