//! Defines `Database`.

use std::collections::BTreeSet;

use burn_gnn_files::DataError;

use super::references::{KeyIndex, References};
use super::table::{DatabaseTable, NEVER, ranks};
use super::task::{DatabaseTask, Part, Targets, TaskRows};
use crate::files::duplicate;

/// Tables with keys and times, and tasks on them.
///
/// [`open`](Self::open) reads a folder in RelBench's layout, or CSV files with a `schema.json`; [`new`](Self::new) builds a
/// database in code.
///
/// ```
/// use burn_gnn_data::{ColumnKind, ColumnValues, Database, DatabaseColumn, DatabaseTable};
/// let ids = |name, ids| DatabaseColumn::new(name, ColumnKind::Key, ColumnValues::Ints(ids));
/// let drivers = DatabaseTable::new("drivers", [ids("driverId", vec![7, 3])?])?.with_primary_key(["driverId"])?;
/// let results = DatabaseTable::new("results", [ids("driverId", vec![3, 3, 9])?])?
///     .with_foreign_key(["driverId"], "drivers")?;
/// let db = Database::new("races", [results, drivers])?;
/// let to_drivers = db.references("results", 0)?;
/// assert_eq!((to_drivers.rows, to_drivers.unknown), (vec![1, 1, u32::MAX], 1));
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
///
/// # Times
/// Every time is a number of microseconds since 1970-01-01T00:00:00 UTC. A date without a time of day is its midnight,
/// a time without a time zone is in UTC, a time with one is converted to UTC; nanoseconds are rounded down.
/// [`DatabaseTable::row_times`] returns the time at which a row appears:
///
/// * its value in the time column;
/// * [`ALWAYS`](crate::ALWAYS) (`i64::MIN`) in a table without a time column: the row is always visible;
/// * [`NEVER`](crate::NEVER) (`i64::MAX`) if the value is missing: the row is never visible. [`inspect`](Self::inspect)
///   counts these rows.
///
/// A row is visible for a seed at time `t` if its time is at most `t`.
///
/// # Missing values
/// A column has a flag per row if a value is missing
/// ([`DatabaseColumn::is_missing`](crate::DatabaseColumn::is_missing)). The value of such a row is the default of its
/// type (0, `false`, an empty text or list, a vector of zeros), so that columns can be compared. NaN is a missing
/// number. An empty field of a CSV file and a null of a Parquet file are missing; an empty text of a Parquet file is a
/// text. A column in which all values are missing, and a column of one value, are allowed.
///
/// # Kinds
/// A column's [`ColumnKind`](crate::ColumnKind) determines how models encode it. A kind that is declared
/// ([`DatabaseOptions::with_kind`](crate::DatabaseOptions::with_kind), a `schema.json` with kinds) is used. Otherwise,
/// in this order:
///
/// 1. Columns of primary and foreign keys are `Key`; they are no features.
/// 2. Values with a type of their own: booleans are `Boolean`, times and dates are `Time`, floats are `Number`, lists
///    are `List`, or `Vector` if they are lists of floats, all of one length of at least 2.
/// 3. Whole numbers are `Category` if there are at most 20 distinct values, of which each occurs 20 times on average,
///    and the difference between the largest and the smallest value is at least twice the number of distinct values
///    (codes such as 200, 404, 500; counts and ratings have few gaps). Otherwise they are `Number`.
/// 4. Texts are `Category` if there are at most 1,000 distinct values, of which each occurs twice on average. Otherwise
///    they are `Text`.
///
/// Counts of distinct values are those of the rows with a time up to the validation time, or up to the test time of a
/// database without one, so that the values of later rows do not change a kind. The type of a CSV column, and whether all
/// lists have one length, are determined by all rows: declare the kind of a column where a later row may differ.
///
/// Fields of CSV files have no type. A column has the first of these types that accepts all of its fields: whole
/// numbers, numbers, booleans (`true`, `false` in any case), times of ISO 8601 (`2014-01-31`, `2014-01-31 12:00:00`),
/// texts. Numbers with a leading zero or plus sign are texts, since codes and telephone numbers are written this way. A
/// column of mixed types is therefore a column of texts; declare its kind to get an error at the first field of another
/// type. A whole number in a column that is declared as a time is seconds since 1970. A column without a name, in which
/// pandas writes row numbers, is not read.
///
/// # Keys
/// A primary key is one column or several. Its values are unique and not missing;
/// [`DatabaseOptions::with_lenient_keys`](crate::DatabaseOptions::with_lenient_keys) accepts rows that violate this,
/// and no foreign key refers to them. Whole numbers that are stored as floats (pandas does so when a value is missing)
/// become whole numbers if they are below 2^53, above which different keys would be equal. A foreign key has as many columns as the primary key of the table to which it refers, which
/// may be its own table. A foreign key with a missing part, or a value that is not in that table, refers to no row;
/// [`references`](Self::references) counts both.
#[derive(Clone, Debug, PartialEq)]
pub struct Database {
    name: String,
    description: String,
    /// Sorted by name.
    tables: Vec<DatabaseTable>,
    val_timestamp: Option<i64>,
    test_timestamp: Option<i64>,
    tasks: Vec<DatabaseTask>,
}

impl Database {
    /// A database of tables, which are sorted by name.
    ///
    /// # Errors
    /// `GraphError::Duplicate` for two tables of one name. [`DataError::Database`], with table, column and row, for a
    /// primary key that is missing or occurs twice (accepted by [`DatabaseTable::with_lenient_key`]), and for a foreign key
    /// to an unknown table, to a table without primary key, with another number of columns than the primary key, or
    /// with values of another type.
    ///
    /// # Cost
    /// One pass over the keys, tables in parallel.
    pub fn new(
        name: impl Into<String>,
        tables: impl IntoIterator<Item = DatabaseTable>,
    ) -> Result<Self, DataError> {
        let mut tables: Vec<_> = tables.into_iter().collect();
        tables.sort_by(|a, b| a.name().cmp(b.name()));
        if let Some(w) = tables.windows(2).find(|w| w[0].name() == w[1].name()) {
            return Err(duplicate("table", w[0].name()));
        }
        let db = Self {
            name: name.into(),
            description: String::new(),
            tables,
            val_timestamp: None,
            test_timestamp: None,
            tasks: vec![],
        };
        db.check_keys()?;
        Ok(db)
    }

    fn check_keys(&self) -> Result<(), DataError> {
        for table in &self.tables {
            for key in table.foreign_keys() {
                let Some(parent) = self.tables.iter().find(|t| t.name() == key.table) else {
                    let why = format!(
                        "foreign key: expected one of the tables {}, found `{}`; add the table, or remove the key",
                        self.known_tables(),
                        key.table
                    );
                    return Err(table.error(&key.name(), None, why));
                };
                References::check(table, key, parent)?;
            }
        }
        use rayon::prelude::*;
        let problems: Vec<_> = self.tables.par_iter().map(KeyIndex::check).collect();
        problems.into_iter().collect()
    }

    fn known_tables(&self) -> String {
        let names: Vec<_> = self.tables.iter().map(|t| format!("`{}`", t.name())).collect();
        names.join(", ")
    }

    /// Sets the times at which validation and test begin, in microseconds since 1970.
    #[must_use]
    pub fn with_timestamps(
        mut self,
        val: impl Into<Option<i64>>,
        test: impl Into<Option<i64>>,
    ) -> Self {
        (self.val_timestamp, self.test_timestamp) = (val.into(), test.into());
        self
    }
    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }
    /// Adds a task, or replaces the task of the same name.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown entity or destination table, an entity that is not a row of its table, a
    /// destination row that does not exist, parts with different numbers of times, entities and targets, and parts with
    /// different numbers of labels.
    pub fn with_task(mut self, task: DatabaseTask) -> Result<Self, DataError> {
        self.check_task(&task)?;
        self.tasks.retain(|t| t.name != task.name);
        self.tasks.push(task);
        self.tasks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(self)
    }

    fn check_task(&self, task: &DatabaseTask) -> Result<(), DataError> {
        let entities = self.table(&task.entity_table)?;
        let destination = task.destination.as_ref().map(|d| self.table(&d.table)).transpose()?;
        let mut labels: Option<usize> = None;
        for part in Part::ALL {
            let TaskRows { times, entities: rows, targets, .. } = task.rows(part);
            let count = rows.len();
            if times.len() != count || targets.len() != count {
                let why = format!(
                    "task `{}`, {part}: expected {count} times and targets, one per entity, found {} and {}",
                    task.name,
                    times.len(),
                    targets.len()
                );
                return Err(entities.error(&task.target_column, None, why));
            }
            if let (Targets::Labels { columns, .. }, 1..) = (targets, count) {
                let expected = *labels.get_or_insert(*columns);
                if *columns != expected {
                    let why = format!(
                        "task `{}`, {part}: expected {expected} labels as in an earlier part, found {columns}; correct the part",
                        task.name
                    );
                    return Err(entities.error(&task.target_column, None, why));
                }
            }
            if let Some(i) = rows.iter().position(|&r| r as usize >= entities.rows()) {
                let why = format!(
                    "task `{}`, {part}: expected entities below {}, the number of rows, found {}",
                    task.name,
                    entities.rows(),
                    rows[i]
                );
                return Err(entities.error(&task.entity_column, Some(i as u64 + 1), why));
            }
            if let (Targets::Lists(lists), Some(table)) = (targets, destination) {
                let bad = |list: &Vec<u32>| list.iter().any(|&r| r as usize >= table.rows());
                if let Some(i) = lists.iter().position(bad) {
                    let why = format!(
                        "task `{}`, {part}: expected rows below {}, the number of rows, found {:?}",
                        task.name,
                        table.rows(),
                        lists[i]
                    );
                    return Err(table.error("", Some(i as u64 + 1), why));
                }
            }
        }
        Ok(())
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Description for readers.
    pub fn description(&self) -> &str {
        &self.description
    }
    /// The tables, sorted by name.
    pub fn tables(&self) -> &[DatabaseTable] {
        &self.tables
    }
    /// The table of a name.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown table.
    pub fn table(&self, name: &str) -> Result<&DatabaseTable, DataError> {
        self.tables.iter().find(|t| t.name() == name).ok_or_else(|| DataError::Database {
            table: name.into(),
            column: String::new(),
            row: None,
            message: format!(
                "expected one of the tables {}, found none of this name",
                self.known_tables()
            ),
        })
    }
    /// The tasks, sorted by name.
    pub fn tasks(&self) -> &[DatabaseTask] {
        &self.tasks
    }
    /// The task of a name.
    ///
    /// # Errors
    /// `GraphError::Setting` for an unknown task.
    pub fn task(&self, name: &str) -> Result<&DatabaseTask, DataError> {
        self.tasks.iter().find(|t| t.name == name).ok_or_else(|| {
            let known: Vec<_> = self.tasks.iter().map(|t| format!("`{}`", t.name)).collect();
            let expected = match known.is_empty() {
                true => "the name of a task; the database has none".into(),
                false => format!("one of the tasks {}", known.join(", ")),
            };
            crate::files::setting("task", &expected, &format!("`{name}`"))
        })
    }
    /// Time at which validation begins, in microseconds since 1970.
    pub fn val_timestamp(&self) -> Option<i64> {
        self.val_timestamp
    }
    /// Time at which test begins, in microseconds since 1970.
    pub fn test_timestamp(&self) -> Option<i64> {
        self.test_timestamp
    }
    /// Bytes of all columns in memory.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(DatabaseTable::bytes).sum()
    }

    /// The rows to which foreign key `key` of a table refers: its number in
    /// [`foreign_keys`](DatabaseTable::foreign_keys).
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown table, and if the table has no foreign key of this number.
    ///
    /// # Cost
    /// One pass over both keys; an index of the primary key, of 4 to 24 bytes per row, unless its numbers ascend without
    /// gaps.
    pub fn references(&self, table: &str, key: usize) -> Result<References, DataError> {
        let child = self.table(table)?;
        let Some(foreign) = child.foreign_keys().get(key) else {
            let found = child.foreign_keys().len();
            return Err(child.error(
                "",
                None,
                format!("expected a foreign key {key}, found {found} keys"),
            ));
        };
        References::new(child, foreign, self.table(&foreign.table)?)
    }

    /// The database of the rows with a time of at most `time`. Rows of tables without a time column are kept, rows with a
    /// missing time are removed. References to removed rows become unknown keys.
    ///
    /// Entities of tasks are renumbered; task rows whose entity is removed are dropped and counted.
    #[must_use]
    pub fn frozen_at(&self, time: i64) -> Self {
        let mut numbers: Vec<Option<Vec<u32>>> = vec![];
        let mut tables = vec![];
        for table in &self.tables {
            if table.time_column().is_none() {
                tables.push(table.clone());
                numbers.push(None);
                continue;
            }
            let (mut kept, mut new) = (vec![], vec![u32::MAX; table.rows()]);
            for (row, row_time) in table.row_times().into_iter().enumerate() {
                if row_time <= time && row_time != NEVER {
                    new[row] = kept.len() as u32;
                    kept.push(row as u32);
                }
            }
            tables.push(table.select(&kept));
            numbers.push(Some(new));
        }
        self.renumbered(tables, &numbers)
    }

    /// The database whose rows are in order of time: in each table with a time column by ascending time, rows of one time
    /// in their order, rows without a time last. RelBench requires this order, so that a database frozen at any time has
    /// the first rows of each table.
    #[must_use]
    pub fn sorted_by_time(&self) -> Self {
        let orders: Vec<Option<Vec<u32>>> = self.tables.iter().map(order_of_times).collect();
        self.clone().reordered(&orders)
    }

    /// The database of other rows; `numbers` are the new numbers of the rows of each table, `None` if they stay.
    fn renumbered(&self, tables: Vec<DatabaseTable>, numbers: &[Option<Vec<u32>>]) -> Self {
        let number_of = |name: &str| {
            let at = self.tables.iter().position(|t| t.name() == name);
            at.and_then(|at| numbers[at].as_deref())
        };
        let renumbered = |task: &DatabaseTask| {
            let mut task = task.clone();
            let entities = number_of(&task.entity_table);
            let destinations = task.destination.as_ref().and_then(|d| number_of(&d.table));
            for part in Part::ALL {
                task.rows_mut(part).renumber(entities, destinations);
            }
            task
        };
        Self {
            name: self.name.clone(),
            description: self.description.clone(),
            tables,
            val_timestamp: self.val_timestamp,
            test_timestamp: self.test_timestamp,
            tasks: self.tasks.iter().map(renumbered).collect(),
        }
    }

    /// The database with the rows of each table in another order, given as the old rows per table; `None` keeps a table.
    pub(crate) fn reordered(mut self, orders: &[Option<Vec<u32>>]) -> Self {
        let numbers: Vec<_> = orders.iter().map(|order| order.as_deref().map(ranks)).collect();
        let mut new = self.renumbered(vec![], &numbers);
        for (table, order) in self.tables.iter_mut().zip(orders) {
            if let Some(order) = order {
                *table = table.select(order);
            }
        }
        new.tables = self.tables;
        new
    }

    /// The database without some columns of a table, such as [`DatabaseTask::remove_columns`]. A key or time column among
    /// them is removed as well, and so are foreign keys to a table that loses its primary key. All rows of a table without
    /// its time column are visible at any time.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown table or column.
    pub fn without_columns<S: AsRef<str>>(
        &self,
        table: &str,
        columns: &[S],
    ) -> Result<Self, DataError> {
        let changed = self.table(table)?.without_columns(columns)?;
        let keyless = changed.primary_key().is_empty();
        let mut db = self.clone();
        for t in &mut db.tables {
            if t.name() == table {
                *t = changed.clone();
            }
            if keyless {
                t.remove_keys_to(table);
            }
        }
        Ok(db)
    }

    /// The database as a task may see it: without its [`hidden_columns`](DatabaseTask::hidden_columns). Columns that do not
    /// exist are skipped, as in RelBench.
    ///
    /// # Errors
    /// [`DataError::Database`] if the time column of a table is hidden, without which its later rows would be visible.
    pub fn for_task(&self, task: &DatabaseTask) -> Result<Self, DataError> {
        let hidden = task.hidden_columns();
        let tables: BTreeSet<_> = hidden.iter().map(|(table, _)| table).collect();
        let mut db = self.clone();
        for name in tables {
            let Ok(table) = self.table(name) else { continue };
            let known = |(t, c): &&(String, String)| t == name && table.column(c).is_ok();
            let columns: Vec<_> = hidden.iter().filter(known).map(|(_, c)| c).collect();
            if let Some(time) = table.time_column().filter(|time| columns.iter().any(|c| c == time))
            {
                let why = format!(
                    "task `{}`: expected hidden columns other than the time column, without which later rows of the table would be visible; remove it from `remove_columns`, or declare another time column",
                    task.name
                );
                return Err(table.error(time, None, why));
            }
            db = db.without_columns(name, &columns)?;
        }
        Ok(db)
    }
}

/// The rows of a table in order of time; `None` if they are.
fn order_of_times(table: &DatabaseTable) -> Option<Vec<u32>> {
    table.time_column()?;
    let times = table.row_times();
    if times.is_sorted() {
        return None;
    }
    let mut order: Vec<u32> = (0..times.len() as u32).collect();
    order.sort_by_key(|&row| times[row as usize]);
    Some(order)
}
