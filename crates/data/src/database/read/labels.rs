//! Reads label tables: entities, seed times and targets.

use std::path::Path;

use burn_gnn_files::DataError;

use super::convert::{RawColumn, to_kind};
use super::table_file::read_table_file;
use crate::database::column::{ColumnKind, ColumnValues, ListValues};
use crate::database::options::DatabaseOptions;
use crate::database::references::RowFinder;
use crate::database::task::{DatabaseTask, LATEST, Part, Targets, TaskRows, TaskType};
use crate::files::format_error;

/// Reads label tables of a task.
pub(super) struct LabelReader<'a> {
    pub(super) task: &'a DatabaseTask,
    pub(super) entities: RowFinder<'a>,
    pub(super) destinations: Option<RowFinder<'a>>,
    pub(super) options: &'a DatabaseOptions,
}

impl LabelReader<'_> {
    /// Reads the label table of a part.
    pub(super) fn read(&self, path: &Path, part: Part) -> Result<TaskRows, DataError> {
        let options = DatabaseOptions { max_rows: None, ..self.options.clone() };
        let task = self.task;
        let target = match &task.destination {
            Some(d) => &d.column,
            None => &task.target_column,
        };
        let kind = |column: &str| {
            if column == task.time_column {
                Some(ColumnKind::Time)
            } else if column == task.entity_column {
                Some(ColumnKind::Key)
            } else if column == target.as_str() {
                Some(match task.task_type {
                    TaskType::Regression => ColumnKind::Number,
                    TaskType::BinaryClassification | TaskType::MulticlassClassification => {
                        ColumnKind::Number
                    }
                    TaskType::MultilabelClassification => ColumnKind::Vector,
                    TaskType::Recommendation => ColumnKind::List,
                })
            } else {
                None
            }
        };
        let columns = read_table_file(path, &task.name, &options, &kind)?;
        let find = |name: &str| columns.iter().find(|c| c.name == name);
        let required = |name: &str| {
            find(name).ok_or_else(|| {
                let known: Vec<_> = columns.iter().map(|c| format!("`{}`", c.name)).collect();
                let why = format!(
                    "expected a column `{name}`, as the task `{}` declares, found {}; correct the description or the file",
                    task.name,
                    known.join(", ")
                );
                format_error(path, why)
            })
        };
        let entity = required(&task.entity_column)?;
        let time = match task.time_column.is_empty() {
            true => None,
            false => Some(required(&task.time_column)?),
        };
        let target = match find(target) {
            // Published test tables may have no targets.
            None if part != Part::Train => None,
            _ => Some(required(target)?),
        };
        self.rows(path, part, entity, time, target)
    }

    fn rows(
        &self,
        path: &Path,
        part: Part,
        entity: &RawColumn,
        time: Option<&RawColumn>,
        target: Option<&RawColumn>,
    ) -> Result<TaskRows, DataError> {
        let missing = |c: &RawColumn, row: usize| c.missing.as_ref().is_some_and(|m| m[row]);
        // NaN among floats becomes a missing key.
        let keys = to_kind(entity.values.clone(), entity.missing.clone(), ColumnKind::Key);
        let (keys, no_key) = keys.map_err(|bad| {
            column_error(path, &entity.name, Some(bad.row), bad.expected, &bad.found)
        })?;
        let found = |expected| column_error(path, &entity.name, None, expected, keys.type_name());
        let rows = self.entities.rows(&keys).map_err(found)?;
        let count = rows.len();
        let times = match time.map(|t| &t.values) {
            Some(ColumnValues::Times(times)) => times.clone(),
            _ => vec![LATEST; count],
        };
        let targets = self.targets(path, target, count)?;
        let mut kept = vec![];
        for (row, entity_row) in rows.iter().enumerate() {
            let no_time = time.is_some_and(|t| missing(t, row));
            let no_target = target.is_some_and(|t| {
                missing(t, row)
                    || matches!(&targets, Targets::Lists(lists) if lists[row].is_empty())
                    || matches!(&targets, Targets::Values(v) if v[row].is_nan())
                    || matches!(&targets, Targets::Classes(v) if v[row] < 0)
            });
            let unlabelled =
                no_target && (part == Part::Train || matches!(targets, Targets::Lists(_)));
            let no_key = no_key.as_ref().is_some_and(|missing| missing[row]);
            if entity_row.is_some() && !no_key && !no_time && !unlabelled {
                kept.push(row);
            }
        }
        let all = TaskRows {
            times,
            entities: rows.into_iter().map(|row| row.unwrap_or(0)).collect(),
            targets,
            dropped: count - kept.len(),
        };
        Ok(if kept.len() == count { all } else { all.select(&kept) })
    }

    fn targets(
        &self,
        path: &Path,
        target: Option<&RawColumn>,
        rows: usize,
    ) -> Result<Targets, DataError> {
        let task_type = self.task.task_type;
        // Vectors of which all are missing have no width of their own.
        let hidden = |c: &&RawColumn| {
            task_type == TaskType::MultilabelClassification
                && c.missing.as_ref().is_some_and(|missing| !missing.contains(&false))
        };
        let Some(RawColumn { name, values, missing }) = target.filter(|c| !hidden(c)) else {
            return Ok(match task_type {
                TaskType::Regression => Targets::Values(vec![f64::NAN; rows]),
                TaskType::BinaryClassification | TaskType::MulticlassClassification => {
                    Targets::Classes(vec![-1; rows])
                }
                TaskType::MultilabelClassification => {
                    let columns = match &self.task.train.targets {
                        Targets::Labels { columns, .. } => (*columns).max(1),
                        _ => 1,
                    };
                    Targets::Labels { columns, values: vec![f32::NAN; rows * columns] }
                }
                TaskType::Recommendation => Targets::Lists(vec![vec![]; rows]),
            });
        };
        let is_missing = |row: usize| missing.as_ref().is_some_and(|m| m[row]);
        let error = |row: Option<usize>, expected: &str, found: &str| {
            column_error(path, name, row, expected, found)
        };
        match (task_type, values) {
            (TaskType::Regression, ColumnValues::Ints(v)) => {
                let value =
                    |(row, &v): (usize, &i64)| if is_missing(row) { f64::NAN } else { v as f64 };
                Ok(Targets::Values(v.iter().enumerate().map(value).collect()))
            }
            (TaskType::Regression, ColumnValues::Floats(v)) => {
                let value = |(row, &v): (usize, &f64)| if is_missing(row) { f64::NAN } else { v };
                Ok(Targets::Values(v.iter().enumerate().map(value).collect()))
            }
            (TaskType::BinaryClassification, _) => {
                let expected = "0 or 1";
                self.classes(values, &is_missing, 1).map_err(|bad| match bad {
                    Some((row, found)) => error(Some(row), expected, &found),
                    None => error(None, expected, values.type_name()),
                })
            }
            (TaskType::MulticlassClassification, _) => {
                let expected = "classes numbered from 0";
                self.classes(values, &is_missing, i64::from(u32::MAX)).map_err(|bad| match bad {
                    Some((row, found)) => error(Some(row), expected, &found),
                    None => error(None, expected, values.type_name()),
                })
            }
            (TaskType::MultilabelClassification, ColumnValues::Vectors { width, values }) => {
                let mut values = values.clone();
                for (row, labels) in values.chunks_exact_mut(*width).enumerate() {
                    if is_missing(row) {
                        labels.fill(f32::NAN);
                    } else if let Some(v) = labels.iter().find(|v| !matches!(**v, 0.0 | 1.0)) {
                        return Err(error(Some(row), "labels of 0 or 1", &v.to_string()));
                    }
                }
                Ok(Targets::Labels { columns: *width, values })
            }
            (TaskType::Recommendation, ColumnValues::Lists(lists)) => {
                let Some(finder) = &self.destinations else {
                    return Err(error(None, "a destination table", "none"));
                };
                let keys = match lists.values() {
                    ListValues::Ints(v) => ColumnValues::Ints(v.clone()),
                    ListValues::Texts(v) => ColumnValues::Texts(v.clone()),
                    ListValues::Floats(v) if v.is_empty() => {
                        return Ok(Targets::Lists(vec![vec![]; rows]));
                    }
                    ListValues::Floats(_) => {
                        return Err(error(None, "lists of keys", "lists of floats"));
                    }
                };
                let rows_of = |expected| error(None, expected, keys.type_name());
                let found = match keys.is_empty() {
                    true => vec![],
                    false => finder.rows(&keys).map_err(rows_of)?,
                };
                let list = |row: usize| {
                    let mut rows: Vec<u32> =
                        found[lists.range(row)].iter().flatten().copied().collect();
                    rows.sort_unstable();
                    rows.dedup();
                    rows
                };
                Ok(Targets::Lists((0..rows).map(list).collect()))
            }
            (_, other) => Err(error(None, "targets of the type of the task", other.type_name())),
        }
    }

    /// Classes of at most `most`; the error is an invalid row, or `None` for another type.
    fn classes(
        &self,
        values: &ColumnValues,
        is_missing: &dyn Fn(usize) -> bool,
        most: i64,
    ) -> Result<Targets, Option<(usize, String)>> {
        let class = |row: usize, v: Option<i64>, found: &dyn Fn() -> String| {
            if is_missing(row) {
                return Ok(-1);
            }
            v.filter(|v| (0..=most).contains(v)).ok_or_else(|| Some((row, found())))
        };
        let classes: Result<Vec<i64>, _> = match values {
            ColumnValues::Ints(v) => {
                let class = |(row, &v): (usize, &i64)| class(row, Some(v), &|| v.to_string());
                v.iter().enumerate().map(class).collect()
            }
            ColumnValues::Floats(v) => {
                let class = |(row, &v): (usize, &f64)| {
                    if v.is_nan() {
                        return Ok(-1);
                    }
                    let whole = (v.fract() == 0.0 && v.abs() < 1e9).then_some(v as i64);
                    class(row, whole, &|| v.to_string())
                };
                v.iter().enumerate().map(class).collect()
            }
            _ => return Err(None),
        };
        classes.map(Targets::Classes)
    }
}

/// An error of a column of a label table. `row` counts from 0.
fn column_error(
    path: &Path,
    column: &str,
    row: Option<usize>,
    expected: &str,
    found: &str,
) -> DataError {
    let row = row.map_or(String::new(), |row| format!(", row {}", row + 1));
    let why = format!(
        "column `{column}`{row}: expected {expected}, found `{found}`; correct the file or the type of the task"
    );
    format_error(path, why)
}
