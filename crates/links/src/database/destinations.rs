//! Lists the destinations that exist at a time, and their learned embeddings.

use std::collections::HashMap;

use burn_gnn_data::{ColumnValues, Database, DatabaseTable, NEVER};
use burn_gnn_models::ModelError;

/// The rows of a destination table in the order of their times.
pub(super) struct Destinations {
    /// Rows that have a time or need none.
    rows: Vec<u32>,
    /// Their times, ascending.
    times: Vec<i64>,
    /// Time of each row of the table.
    of_row: Vec<i64>,
    /// Learned embedding of each row of the table.
    embeddings: Vec<Option<u32>>,
}

impl Destinations {
    /// The destinations of a database; `keys` are those with an embedding.
    pub(super) fn new(db: &Database, table: &str, keys: &[String]) -> Result<Self, ModelError> {
        let table = db.table(table)?;
        let times = table.row_times();
        let mut rows: Vec<u32> = (0..table.rows() as u32).collect();
        rows.retain(|&row| times[row as usize] != NEVER);
        rows.sort_by_key(|&row| times[row as usize]);
        let number_of: HashMap<&str, u32> = keys.iter().map(String::as_str).zip(0..).collect();
        let embedding = |row: u32| number_of.get(key_text(table, row).as_str()).copied();
        Ok(Self {
            times: rows.iter().map(|&row| times[row as usize]).collect(),
            embeddings: (0..table.rows() as u32).map(embedding).collect(),
            of_row: times,
            rows,
        })
    }

    /// Rows that exist at a time.
    pub(super) fn at(&self, time: i64) -> &[u32] {
        &self.rows[..self.times.partition_point(|&of| of <= time)]
    }

    /// Whether a row exists at a time.
    pub(super) fn exists(&self, row: u32, time: i64) -> bool {
        self.of_row.get(row as usize).is_some_and(|&of| of <= time && of != NEVER)
    }

    /// Embeddings of rows.
    pub(super) fn embeddings(&self, rows: &[u32]) -> Vec<Option<u32>> {
        rows.iter().map(|&row| self.embeddings[row as usize]).collect()
    }
}

/// Primary keys of the rows of a table that exist before a time.
pub(super) fn keys_before(table: &DatabaseTable, end: i64) -> Vec<String> {
    let times = table.row_times();
    let rows = (0..table.rows() as u32).filter(|&row| times[row as usize] < end);
    let mut keys: Vec<String> = rows.map(|row| key_text(table, row)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The primary key of a row.
fn key_text(table: &DatabaseTable, row: u32) -> String {
    let part = |name: &String| match table.column(name).map(|column| column.values()) {
        Ok(ColumnValues::Ints(values)) => values[row as usize].to_string(),
        Ok(ColumnValues::Texts(values)) => values.get(row as usize).to_owned(),
        _ => String::new(),
    };
    table.primary_key().iter().map(part).collect::<Vec<_>>().join("\u{1f}")
}
