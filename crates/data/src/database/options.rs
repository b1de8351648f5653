//! Options for opening a database.

use std::collections::{BTreeMap, BTreeSet};

use super::column::ColumnKind;
use crate::tables::schema::csv_options::Csv;

/// How [`Database::open_with`](crate::Database::open_with) reads a folder.
///
/// ```
/// use burn_gnn_data::{ColumnKind, DatabaseOptions};
/// let options = DatabaseOptions::new()
///     .with_kind("results", "statusId", ColumnKind::Category)
///     .with_tables(["races", "results", "drivers"]);
/// assert_eq!(options.kinds[&("results".into(), "statusId".into())], ColumnKind::Category);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DatabaseOptions {
    /// Declared kinds by table and column; other kinds are inferred.
    pub kinds: BTreeMap<(String, String), ColumnKind>,
    /// Columns `(table, column)` that are not read.
    pub ignored: BTreeSet<(String, String)>,
    /// Tables to read; `None`: all of the description. Foreign keys to other tables are not read.
    pub tables: Option<Vec<String>>,
    /// Most rows of a table; later rows are not read. `None`: all rows.
    pub max_rows: Option<usize>,
    /// Whether rows with a missing or repeated primary key are accepted. No foreign key refers to them.
    pub lenient_keys: bool,
    /// Whether tasks are read.
    pub tasks: bool,
    /// Dialect of CSV files: delimiter, quotes, escape, comments, encoding, decimal mark and texts that are missing values.
    /// Names of columns are not used.
    pub csv: Csv,
    /// Most bytes that a byte of a compressed file may expand to, in addition to 16 MiB.
    pub max_expansion: u32,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            ignored: BTreeSet::new(),
            tables: None,
            max_rows: None,
            lenient_keys: false,
            tasks: true,
            csv: Csv::default(),
            max_expansion: crate::files::decompression_limit::MAX_EXPANSION,
        }
    }
}

impl DatabaseOptions {
    /// All tables, rows and tasks; kinds are inferred.
    pub fn new() -> Self {
        Self::default()
    }
    /// Declares the kind of a column. A value that this kind cannot have is an error.
    #[must_use]
    pub fn with_kind(
        mut self,
        table: impl Into<String>,
        column: impl Into<String>,
        kind: ColumnKind,
    ) -> Self {
        self.kinds.insert((table.into(), column.into()), kind);
        self
    }
    /// Does not read a column, such as one of a type that is not supported.
    #[must_use]
    pub fn with_ignored(mut self, table: impl Into<String>, column: impl Into<String>) -> Self {
        self.ignored.insert((table.into(), column.into()));
        self
    }
    /// Reads these tables only, and no foreign key to another table.
    #[must_use]
    pub fn with_tables(mut self, tables: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tables = Some(tables.into_iter().map(Into::into).collect());
        self
    }
    /// Reads the first rows of each table only.
    #[must_use]
    pub fn with_max_rows(mut self, rows: usize) -> Self {
        self.max_rows = Some(rows);
        self
    }
    /// Accepts rows whose primary key is missing, or occurs in an earlier row. No foreign key refers to them.
    #[must_use]
    pub fn with_lenient_keys(mut self) -> Self {
        self.lenient_keys = true;
        self
    }
    /// Reads no tasks.
    #[must_use]
    pub fn without_tasks(mut self) -> Self {
        self.tasks = false;
        self
    }
    /// Sets the dialect of CSV files.
    #[must_use]
    pub fn with_csv(mut self, csv: Csv) -> Self {
        self.csv = csv;
        self
    }
    /// Whether a column is not read.
    pub(crate) fn is_ignored(&self, table: &str, column: &str) -> bool {
        self.ignored.iter().any(|(t, c)| t == table && c == column)
    }
}
