//! Adds the labels that are known at a time to a database, as a table.

use std::borrow::Cow;

use burn_gnn_data::{
    ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable, DatabaseTask, Part, Targets,
    TaskType,
};

use crate::error::ModelError;

/// The database with a table of the labels of `task`: for each labelled row, the key of its entity, its label, and as
/// time the end of the window that the label is computed from. A seed at that time or later sees it, because it could
/// be computed from the rows that the seed sees.
///
/// # Errors
/// A task without a window (`timedelta`), whose labels have no time at which they are known; an entity table without a
/// primary key; targets of a recommendation.
pub(crate) fn with_label_history<'a>(
    db: &'a Database,
    task: &DatabaseTask,
) -> Result<Cow<'a, Database>, ModelError> {
    let Some(window) = task.timedelta.filter(|window| *window > 0) else {
        let range = "false for a task without `timedelta`, whose labels have no time at which they are known";
        return Err(ModelError::out_of_range("label_history", range, true));
    };
    let entities = db.table(&task.entity_table)?;
    if entities.primary_key().is_empty() {
        let range = format!("false, because table `{}` has no primary key", entities.name());
        return Err(ModelError::out_of_range("label_history", range, true));
    }
    let (mut rows, mut times, mut labels): (Vec<u32>, Vec<i64>, Vec<Vec<f64>>) =
        (vec![], vec![], vec![]);
    for part in Part::ALL {
        let of = task.rows(part);
        for i in 0..of.len() {
            let label: Vec<f64> = match &of.targets {
                Targets::Classes(v) => vec![if v[i] < 0 { f64::NAN } else { v[i] as f64 }],
                Targets::Values(v) => vec![v[i]],
                Targets::Labels { columns, values } => {
                    let row = &values[i * columns..(i + 1) * columns];
                    row.iter().map(|&y| f64::from(y)).collect()
                }
                Targets::Lists(_) => vec![],
            };
            if label.iter().any(|y| !y.is_nan()) {
                rows.push(of.entities[i]);
                times.push(of.times[i].saturating_add(window));
                labels.push(label);
            }
        }
    }
    let mut columns = vec![];
    for key in entities.primary_key() {
        columns.push(entities.column(key)?.select(&rows));
    }
    let width = |part| match &task.rows(part).targets {
        Targets::Labels { columns, .. } => *columns,
        Targets::Lists(_) => 0,
        Targets::Classes(_) | Targets::Values(_) => 1,
    };
    let width = Part::ALL.map(width).into_iter().max().unwrap_or(0);
    // The type of the task, not the labels: no later label may change the kind of the column.
    let is_category = task.task_type == TaskType::MulticlassClassification;
    for label in 0..width {
        let name = format!("label_{label}");
        let of_row = |of: &Vec<f64>| of.get(label).copied().unwrap_or(f64::NAN);
        let values: Vec<f64> = labels.iter().map(of_row).collect();
        let values = ColumnValues::Floats(values);
        columns.push(if is_category {
            let ints = labels.iter().map(|of| of[label] as i64).collect();
            DatabaseColumn::new(name, ColumnKind::Category, ColumnValues::Ints(ints))?
        } else {
            DatabaseColumn::new(name, ColumnKind::Number, values)?
        });
    }
    columns.push(DatabaseColumn::new("known_from", ColumnKind::Time, ColumnValues::Times(times))?);
    let name = (0..)
        .map(|i| if i == 0 { "labels".to_owned() } else { format!("labels_{i}") })
        .find(|name| db.table(name).is_err())
        .unwrap_or_default();
    let table = DatabaseTable::new(name, columns)?
        .with_foreign_key(entities.primary_key().to_vec(), entities.name())?
        .with_time_column("known_from")?;
    let mut new = Database::new(db.name(), db.tables().iter().cloned().chain([table]))?
        .with_timestamps(db.val_timestamp(), db.test_timestamp());
    for task in db.tasks() {
        new = new.with_task(task.clone())?;
    }
    Ok(Cow::Owned(new))
}
