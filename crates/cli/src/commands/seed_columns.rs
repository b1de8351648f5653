//! Makes the first columns of predictions: the seeds.

use burn_gnn::data::{ColumnKind, ColumnValues, DatabaseColumn, DatabaseTable, LATEST};

use crate::failure::Failure;

/// Keys and times of seeds, the first columns of predictions.
pub(super) fn seed_columns(
    entities: &DatabaseTable,
    rows: &[u32],
    times: Vec<i64>,
) -> Result<Vec<DatabaseColumn>, Failure> {
    let mut columns = vec![];
    for key in entities.primary_key() {
        columns.push(entities.column(key)?.select(rows));
    }
    if columns.is_empty() {
        let numbers = ColumnValues::Ints(rows.iter().copied().map(i64::from).collect());
        columns.push(DatabaseColumn::new("row", ColumnKind::Number, numbers)?);
    }
    // Seeds of a task without times.
    let missing = times.iter().map(|&time| time == LATEST).collect();
    let times = DatabaseColumn::new("time", ColumnKind::Time, ColumnValues::Times(times))?;
    columns.push(times.with_missing(missing)?);
    Ok(columns)
}
