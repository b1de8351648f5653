//! Tables of a database: columns, keys, times.

use burn_gnn_files::DataError;
use hashbrown::HashSet;

use super::column::{ColumnKind, ColumnValues, DatabaseColumn};

/// Time of a row that is always visible: of a table without a time column.
pub const ALWAYS: i64 = i64::MIN;
/// Time of a row that is never visible: the value of its time column is missing.
pub const NEVER: i64 = i64::MAX;

/// A reference to rows of a table, by the values of its primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    /// Columns of the referring table, in the order of the columns of the primary key.
    pub columns: Vec<String>,
    /// The table to which they refer, which may be the referring table.
    pub table: String,
}

impl ForeignKey {
    /// The name of the key: its columns joined by `+`.
    pub fn name(&self) -> String {
        self.columns.join("+")
    }
}

/// A table of a database.
///
/// ```
/// use burn_gnn_data::{ColumnKind, ColumnValues, DatabaseColumn, DatabaseTable};
/// let column = |name, kind, values| DatabaseColumn::new(name, kind, ColumnValues::Ints(values));
/// let races = DatabaseTable::new("races", [
///     column("raceId", ColumnKind::Number, vec![18, 19])?,
///     column("circuitId", ColumnKind::Number, vec![1, 2])?,
///     DatabaseColumn::new("date", ColumnKind::Time, ColumnValues::Times(vec![1_000_000, 2_000_000]))?,
/// ])?
/// .with_primary_key(["raceId"])?
/// .with_foreign_key(["circuitId"], "circuits")?
/// .with_time_column("date")?;
/// assert_eq!((races.rows(), races.row_times()), (2, vec![1_000_000, 2_000_000]));
/// assert_eq!(races.column("circuitId")?.kind(), ColumnKind::Key);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseTable {
    name: String,
    rows: usize,
    columns: Vec<DatabaseColumn>,
    primary_key: Vec<String>,
    time_column: Option<String>,
    foreign_keys: Vec<ForeignKey>,
    lenient_key: bool,
}

impl DatabaseTable {
    /// A table without keys and without times.
    ///
    /// # Errors
    /// [`DataError::Database`] for an empty name, columns of different lengths, two columns of one name, or more rows than
    /// [`Relation::LIMIT`](burn_gnn_graph::Relation::LIMIT).
    pub fn new(
        name: impl Into<String>,
        columns: impl IntoIterator<Item = DatabaseColumn>,
    ) -> Result<Self, DataError> {
        let columns: Vec<_> = columns.into_iter().collect();
        let rows = columns.first().map_or(0, DatabaseColumn::len);
        let table = Self {
            name: name.into(),
            rows,
            columns,
            primary_key: vec![],
            time_column: None,
            foreign_keys: vec![],
            lenient_key: false,
        };
        if table.name.is_empty() {
            return Err(table.error(
                "",
                None,
                "expected a name, found an empty text; name the table",
            ));
        }
        let mut names = HashSet::new();
        for column in &table.columns {
            if column.len() != rows {
                let why =
                    format!("expected {rows} rows as in the first column, found {}", column.len());
                return Err(table.error(column.name(), None, why));
            }
            if !names.insert(column.name()) {
                let why = "expected columns of different names, found two of this name; rename one";
                return Err(table.error(column.name(), None, why));
            }
        }
        drop(names);
        if rows as u64 > burn_gnn_graph::Relation::LIMIT {
            let limit = burn_gnn_graph::Relation::LIMIT;
            return Err(table.error(
                "",
                None,
                format!("expected at most {limit} rows, found {rows}"),
            ));
        }
        Ok(table)
    }

    /// Sets the primary key, one column or several. Whole numbers that are stored as floats become whole numbers, and the
    /// kind of the columns becomes [`ColumnKind::Key`], except for times. [`Database::new`](crate::Database::new) rejects
    /// values that are missing or not unique.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown column, a column twice, floats that are not whole, booleans, lists and
    /// vectors.
    pub fn with_primary_key<S: Into<String>>(
        mut self,
        columns: impl IntoIterator<Item = S>,
    ) -> Result<Self, DataError> {
        let columns: Vec<String> = columns.into_iter().map(Into::into).collect();
        self.make_keys(&columns, "primary key")?;
        self.primary_key = columns;
        Ok(self)
    }

    /// Accepts rows whose primary key is missing, or occurs in an earlier row. No foreign key refers to them.
    #[must_use]
    pub fn with_lenient_key(mut self) -> Self {
        self.lenient_key = true;
        self
    }

    /// Adds a foreign key: these columns contain values of the primary key of `table`, which may be this table. Columns are
    /// converted as by [`with_primary_key`](Self::with_primary_key).
    ///
    /// # Errors
    /// As [`with_primary_key`](Self::with_primary_key); a foreign key of the same columns to the same table.
    pub fn with_foreign_key<S: Into<String>>(
        mut self,
        columns: impl IntoIterator<Item = S>,
        table: impl Into<String>,
    ) -> Result<Self, DataError> {
        let key = ForeignKey {
            columns: columns.into_iter().map(Into::into).collect(),
            table: table.into(),
        };
        self.make_keys(&key.columns, "foreign key")?;
        if self.foreign_keys.iter().any(|k| k.columns == key.columns) {
            let why = "expected one foreign key of these columns, found two; remove one";
            return Err(self.error(&key.name(), None, why));
        }
        self.foreign_keys.push(key);
        self.foreign_keys.sort_by(|a, b| a.columns.cmp(&b.columns));
        Ok(self)
    }

    /// Sets the time column.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown column, and for a column that does not contain times.
    pub fn with_time_column(mut self, column: impl Into<String>) -> Result<Self, DataError> {
        let column = column.into();
        let values = self.column(&column)?.values();
        if !matches!(values, ColumnValues::Times(_)) {
            let why = format!(
                "expected times in the time column, found {}; convert them, or declare the kind `time`",
                values.type_name()
            );
            return Err(self.error(&column, None, why));
        }
        self.time_column = Some(column);
        Ok(self)
    }

    fn make_keys(&mut self, names: &[String], what: &str) -> Result<(), DataError> {
        if names.is_empty() {
            let why = format!("{what}: expected at least one column, found none");
            return Err(self.error("", None, why));
        }
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                let why = format!("{what}: expected each column once, found it twice");
                return Err(self.error(name, None, why));
            }
            self.column(name)?;
            let at = self.columns.iter().position(|c| c.name() == name);
            let Some(column) = at.map(|at| &mut self.columns[at]) else { continue };
            if let Err(row) = column.floats_as_ints() {
                let ColumnValues::Floats(v) = column.values() else { continue };
                let why = format!(
                    "{what}: expected a whole number below 2^53, found {}; correct the value, or declare the kind `text`",
                    v[row]
                );
                return Err(self.error(name, Some(row as u64 + 1), why));
            }
            match column.values() {
                ColumnValues::Ints(_) | ColumnValues::Texts(_) => {
                    *column = column.clone().with_kind(ColumnKind::Key)?;
                }
                ColumnValues::Times(_) => {}
                other => {
                    let found = other.type_name();
                    let why = format!(
                        "{what}: expected whole numbers, texts or times, found {found}; convert the column to whole numbers"
                    );
                    return Err(self.error(name, None, why));
                }
            }
        }
        Ok(())
    }

    /// An error of this table. `column` may be empty; `row` counts from 1.
    pub(crate) fn error(
        &self,
        column: &str,
        row: Option<u64>,
        message: impl Into<String>,
    ) -> DataError {
        let (table, column) = (self.name.clone(), column.to_owned());
        DataError::Database { table, column, row, message: message.into() }
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// The columns, in the order of the table.
    pub fn columns(&self) -> &[DatabaseColumn] {
        &self.columns
    }
    /// The column of a name.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown column.
    pub fn column(&self, name: &str) -> Result<&DatabaseColumn, DataError> {
        self.columns.iter().find(|c| c.name() == name).ok_or_else(|| {
            let known: Vec<_> = self.columns.iter().map(|c| format!("`{}`", c.name())).collect();
            let why = format!(
                "expected one of the columns {}, found none of this name",
                known.join(", ")
            );
            self.error(name, None, why)
        })
    }
    /// Columns of the primary key; empty if there is none.
    pub fn primary_key(&self) -> &[String] {
        &self.primary_key
    }
    /// Whether rows with a missing or repeated primary key are accepted.
    pub fn has_lenient_key(&self) -> bool {
        self.lenient_key
    }
    /// The time column.
    pub fn time_column(&self) -> Option<&str> {
        self.time_column.as_deref()
    }
    /// Foreign keys, sorted by their columns.
    pub fn foreign_keys(&self) -> &[ForeignKey] {
        &self.foreign_keys
    }
    /// Whether a column is part of the primary key or of a foreign key.
    pub fn is_key(&self, column: &str) -> bool {
        let mut keys = self.foreign_keys.iter().flat_map(|k| &k.columns).chain(&self.primary_key);
        keys.any(|c| c == column)
    }
    /// The time at which each row appears, in microseconds since 1970: [`ALWAYS`] in a table without a time column,
    /// [`NEVER`] for a missing time.
    pub fn row_times(&self) -> Vec<i64> {
        let column = self.time_column.as_ref().and_then(|name| self.column(name).ok());
        let Some((column, ColumnValues::Times(times))) = column.map(|c| (c, c.values())) else {
            return vec![ALWAYS; self.rows];
        };
        let mut times = times.clone();
        for (time, _) in times.iter_mut().zip(column.missing().unwrap_or_default()).filter(|t| *t.1)
        {
            *time = NEVER;
        }
        times
    }
    /// Bytes of all columns in memory.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(DatabaseColumn::bytes).sum()
    }
    /// Replaces a column by one of the same name and number of rows.
    pub(crate) fn replace_column(&mut self, column: DatabaseColumn) {
        if let Some(old) = self.columns.iter_mut().find(|c| c.name() == column.name()) {
            *old = column;
        }
    }
    /// The table of `rows`, in this order. Keys keep their values.
    ///
    /// # Panics
    /// If a row is not below [`rows`](Self::rows).
    #[track_caller]
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        let columns = self.columns.iter().map(|c| c.select(rows)).collect();
        Self { rows: rows.len(), columns, ..self.without_data() }
    }
    /// The table without some columns. A key with one of them is removed, and so is the time column.
    ///
    /// # Errors
    /// [`DataError::Database`] for an unknown column.
    pub fn without_columns<S: AsRef<str>>(&self, names: &[S]) -> Result<Self, DataError> {
        for name in names {
            self.column(name.as_ref())?;
        }
        let removed = |column: &str| names.iter().any(|n| n.as_ref() == column);
        let mut table = self.without_data();
        table.columns = self.columns.iter().filter(|c| !removed(c.name())).cloned().collect();
        if table.primary_key.iter().any(|c| removed(c)) {
            table.primary_key.clear();
        }
        table.foreign_keys.retain(|k| !k.columns.iter().any(|c| removed(c)));
        table.time_column = table.time_column.filter(|c| !removed(c));
        Ok(table)
    }
    /// Removes foreign keys to a table.
    pub(crate) fn remove_keys_to(&mut self, table: &str) {
        self.foreign_keys.retain(|k| k.table != table);
    }
    /// Name and keys without columns.
    fn without_data(&self) -> Self {
        Self {
            name: self.name.clone(),
            rows: self.rows,
            columns: vec![],
            primary_key: self.primary_key.clone(),
            time_column: self.time_column.clone(),
            foreign_keys: self.foreign_keys.clone(),
            lenient_key: self.lenient_key,
        }
    }
}

/// The new number of each row of a table whose rows are `order` in the new one.
pub(crate) fn ranks(order: &[u32]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&row, rank)| ranks[row as usize] = rank);
    ranks
}
