//! Prepares a database for models: graph and encoder inputs.

use std::borrow::Cow;
use std::sync::Arc;

use burn_gnn_data::{Database, DatabaseGraph, DatabaseTable, DatabaseTask, Part};
use rayon::prelude::*;

use crate::error::ModelError;
use crate::relational::columns::column_encoding::EncoderOptions;
use crate::relational::columns::encoder_config::TableEncoderConfig;
use crate::relational::columns::table_rows::TableRows;

/// A database as models read it: its typed temporal graph, and the prepared columns of every table.
///
/// A clone shares both.
#[derive(Clone)]
pub struct RelationalData {
    graph: Arc<DatabaseGraph>,
    /// By node type: tables in the order of their names, as node types are.
    rows: Arc<[TableRows]>,
}

impl RelationalData {
    /// Computes the statistics of every table from the rows before `before`; `task` removes its columns.
    ///
    /// # Errors
    /// As [`TableEncoderConfig::fit`].
    pub fn fit_encoders(
        db: &Database,
        task: Option<&DatabaseTask>,
        before: i64,
        hidden: usize,
        options: &EncoderOptions,
    ) -> Result<Vec<TableEncoderConfig>, ModelError> {
        let db = for_task(db, task)?;
        let fit = |table: &DatabaseTable| TableEncoderConfig::fit(table, before, hidden, options);
        db.tables().iter().map(fit).collect()
    }

    /// Prepares a database for encoders, one per table. `task` removes its columns.
    ///
    /// # Errors
    /// A table without an encoder or an encoder without a table; a column that an encoder reads and the table does not
    /// have; columns of other types.
    ///
    /// # Cost
    /// As [`Database::to_graph`], and reads every encoded column once.
    pub fn new(
        db: &Database,
        task: Option<&DatabaseTask>,
        encoders: &[TableEncoderConfig],
    ) -> Result<Self, ModelError> {
        let db = for_task(db, task)?;
        let names: Vec<&str> = db.tables().iter().map(DatabaseTable::name).collect();
        let known: Vec<&str> = encoders.iter().map(|encoder| encoder.table.as_str()).collect();
        let range = format!("the tables of the encoders, {known:?}");
        ModelError::check_range("tables", &range, format!("{names:?}"), names == known)?;
        let rows = db.tables().par_iter().zip(encoders);
        let rows = rows.map(|(table, encoder)| TableRows::new(encoder, table));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { graph: db.to_graph()?.into(), rows: rows.into() })
    }

    /// The graph, whose nodes are rows.
    pub fn graph(&self) -> &DatabaseGraph {
        &self.graph
    }

    /// The prepared columns of each table, in the order of node types.
    pub fn tables(&self) -> &[TableRows] {
        &self.rows
    }
}

/// The database without the columns that a task hides, which include the target of an autocomplete task.
pub(crate) fn for_task<'a>(
    db: &'a Database,
    task: Option<&DatabaseTask>,
) -> Result<Cow<'a, Database>, ModelError> {
    Ok(match task.filter(|task| !task.hidden_columns().is_empty()) {
        Some(task) => Cow::Owned(db.for_task(task)?),
        None => Cow::Borrowed(db),
    })
}

/// The time before which rows count for statistics: the validation time, else that of the first validation seed; never
/// later than [`test_time`]. Without either part, all rows that a training seed sees count.
pub fn statistics_end(db: &Database, task: &DatabaseTask) -> i64 {
    let val = validation_time(db, task);
    let last = || task.rows(Part::Train).times.iter().copied().max();
    val.into_iter()
        .chain(test_time(db, task))
        .min()
        .unwrap_or_else(|| last().map_or(i64::MAX, |time| time.saturating_add(1)))
}

/// The validation time of a database, else that of the first validation seed; `None` without validation.
pub(crate) fn validation_time(db: &Database, task: &DatabaseTask) -> Option<i64> {
    db.val_timestamp().or_else(|| first_time(task, Part::Val))
}

/// The test time of a database, or the time of the first test seed if it is earlier; `None` without either.
pub fn test_time(db: &Database, task: &DatabaseTask) -> Option<i64> {
    db.test_timestamp().into_iter().chain(first_time(task, Part::Test)).min()
}

fn first_time(task: &DatabaseTask, part: Part) -> Option<i64> {
    task.rows(part).times.iter().copied().min()
}
