//! Orders the rows of tables by time.

use std::cmp::Ordering;

use rayon::prelude::*;

use super::column::{ColumnValues, DatabaseColumn, ListValues};
use super::database::Database;
use super::table::DatabaseTable;

/// The rows of a table by time, then by primary key, missing values first. `times` are the times of the rows, if the
/// table has a time column. A table whose primary key is missing or not unique is ordered by all columns in addition,
/// and only equal rows keep their order. `None` if the rows are in this order.
///
/// Rows after a time come after all rows up to it. The rank of a row therefore does not depend on later rows, nor on the
/// order of the file.
pub(crate) fn time_order(table: &DatabaseTable, times: Option<&[i64]>) -> Option<Vec<u32>> {
    let is_unique = !table.primary_key().is_empty() && !table.has_lenient_key();
    let mut columns: Vec<&DatabaseColumn> =
        table.primary_key().iter().filter_map(|name| table.column(name).ok()).collect();
    if !is_unique {
        columns.extend(table.columns());
    }
    let compare = |a: usize, b: usize| {
        let by_time = times.map_or(Ordering::Equal, |times| times[a].cmp(&times[b]));
        by_time.then_with(|| {
            let mut by_column = columns.iter().map(|column| compare_cells(column, a, b));
            by_column.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    };
    if (1..table.rows()).into_par_iter().all(|row| compare(row - 1, row) != Ordering::Greater) {
        return None;
    }
    let mut order: Vec<u32> = (0..table.rows() as u32).collect();
    order.par_sort_by(|&a, &b| compare(a as usize, b as usize));
    Some(order)
}

/// Compares the values of a column in two rows; missing values come first, floats are in total order.
fn compare_cells(column: &DatabaseColumn, a: usize, b: usize) -> Ordering {
    let present = |row: usize| !column.is_missing(row);
    let floats = |a: &[f64], b: &[f64]| {
        let mut by_value = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
        by_value.find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
    };
    present(a).cmp(&present(b)).then_with(|| match column.values() {
        ColumnValues::Ints(v) | ColumnValues::Times(v) => v[a].cmp(&v[b]),
        ColumnValues::Floats(v) => v[a].total_cmp(&v[b]),
        ColumnValues::Texts(v) => v.get(a).cmp(v.get(b)),
        ColumnValues::Bools(v) => v[a].cmp(&v[b]),
        ColumnValues::Lists(v) => match v.values() {
            ListValues::Ints(values) => values[v.range(a)].cmp(&values[v.range(b)]),
            ListValues::Floats(values) => floats(&values[v.range(a)], &values[v.range(b)]),
            ListValues::Texts(values) => {
                v.range(a).map(|i| values.get(i)).cmp(v.range(b).map(|i| values.get(i)))
            }
        },
        ColumnValues::Vectors { width, values } => {
            let row = |row: usize| &values[row * width..(row + 1) * width];
            let mut by_value = row(a).iter().zip(row(b)).map(|(a, b)| a.total_cmp(b));
            by_value.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }
    })
}

impl Database {
    /// Whether the rows of each table are in the order of [`in_time_order`](Self::in_time_order).
    pub fn is_in_time_order(&self) -> bool {
        self.tables().iter().all(|table| order_of(table).is_none())
    }

    /// The database with the rows of each table in the order of their times, then of their primary keys. Rows whose time
    /// is missing come last. Tables without a time column are ordered by their primary key, tables without a primary key
    /// by all columns. Entities and destinations of tasks are renumbered; the order of task rows stays.
    ///
    /// In such a database the number of a row does not depend on later rows. Samplers on ranks and of graphs in files key
    /// their draws by the numbers of nodes: for them, make the graph of this database, so that future rows do not change
    /// a batch. Batches equal those that [`DatabaseGraph::sampler`](crate::DatabaseGraph::sampler) makes for the database
    /// in any other order.
    ///
    /// # Cost
    /// A check per table, and for a table in another order a sort of its rows and a copy of its columns.
    #[must_use]
    pub fn in_time_order(self) -> Self {
        let orders: Vec<Option<Vec<u32>>> = self.tables().iter().map(order_of).collect();
        self.reordered(&orders)
    }
}

fn order_of(table: &DatabaseTable) -> Option<Vec<u32>> {
    let times = table.time_column().map(|_| table.row_times());
    time_order(table, times.as_deref())
}
