//! Makes a table of columns that were read, and of its description.

use std::collections::BTreeMap;

use burn_gnn_files::DataError;

use super::convert::RawColumn;
use super::kinds::inferred_kind;
use crate::database::column::{ColumnKind, ColumnValues, DatabaseColumn};
use crate::database::options::DatabaseOptions;
use crate::database::table::{DatabaseTable, ForeignKey};

/// The description of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct TableSpec {
    pub(super) name: String,
    pub(super) primary_key: Vec<String>,
    pub(super) time_column: Option<String>,
    pub(super) foreign_keys: Vec<ForeignKey>,
    /// Declared kinds.
    pub(super) kinds: BTreeMap<String, ColumnKind>,
    pub(super) lenient_key: bool,
}

impl TableSpec {
    /// The kind that the description, the caller or the role of a column declares.
    pub(super) fn kind(&self, column: &str, options: &DatabaseOptions) -> Option<ColumnKind> {
        if self.time_column.as_deref() == Some(column) {
            return Some(ColumnKind::Time);
        }
        let by_caller = options.kinds.get(&(self.name.clone(), column.to_owned()));
        by_caller.or_else(|| self.kinds.get(column)).copied()
    }

    /// Removes foreign keys to tables that are not read.
    pub(super) fn retain_keys(&mut self, options: &DatabaseOptions) {
        if let Some(tables) = &options.tables {
            self.foreign_keys.retain(|k| tables.contains(&k.table));
        }
    }

    /// An error for a declared kind of a column that the table does not have.
    fn check_kinds(
        &self,
        columns: &[RawColumn],
        options: &DatabaseOptions,
    ) -> Result<(), DataError> {
        let by_caller = options.kinds.keys().filter(|(table, _)| *table == self.name);
        let declared = by_caller.map(|(_, column)| column).chain(self.kinds.keys());
        for column in declared.filter(|column| !options.is_ignored(&self.name, column)) {
            if columns.iter().all(|c| c.name != *column) {
                let known: Vec<_> = columns.iter().map(|c| format!("`{}`", c.name)).collect();
                return Err(DataError::Database {
                    table: self.name.clone(),
                    column: column.clone(),
                    row: None,
                    message: format!(
                        "a kind is declared: expected one of the columns {}, found none of this name; correct the name",
                        known.join(", ")
                    ),
                });
            }
        }
        Ok(())
    }

    /// The table. Kinds that are not declared are inferred from the rows with a time of at most `until`.
    pub(super) fn table(
        &self,
        columns: Vec<RawColumn>,
        options: &DatabaseOptions,
        until: Option<i64>,
    ) -> Result<DatabaseTable, DataError> {
        self.check_kinds(&columns, options)?;
        let times = columns.iter().find(|c| Some(&c.name) == self.time_column.as_ref());
        let early: Option<Vec<bool>> = match (times.map(|c| (&c.values, &c.missing)), until) {
            (Some((ColumnValues::Times(times), missing)), Some(until)) => {
                let present = |row: usize| missing.as_ref().is_none_or(|m| !m[row]);
                Some(times.iter().enumerate().map(|(i, &t)| t <= until && present(i)).collect())
            }
            _ => None,
        };
        let made = columns.into_iter().map(|RawColumn { name, values, missing }| {
            let seen = |row: usize| {
                early.as_ref().is_none_or(|e| e[row]) && missing.as_ref().is_none_or(|m| !m[row])
            };
            let kind = self.kind(&name, options);
            // Columns of keys become keys below, whatever type they have.
            let kind = kind.filter(|k| *k != ColumnKind::Key || is_id(&values));
            let kind = kind.unwrap_or_else(|| inferred_kind(&values, seen));
            let column = DatabaseColumn::new(name, kind, values)?;
            match missing {
                Some(missing) => column.with_missing(missing),
                None => Ok(column),
            }
        });
        let made = made.collect::<Result<Vec<_>, _>>().map_err(|e| self.named(e))?;
        let mut table = DatabaseTable::new(&self.name, made)?;
        if let Some(column) = &self.time_column {
            table = table.with_time_column(column)?;
        }
        if !self.primary_key.is_empty() {
            table = table.with_primary_key(&self.primary_key)?;
        }
        for key in &self.foreign_keys {
            table = table.with_foreign_key(&key.columns, &key.table)?;
        }
        if options.lenient_keys || self.lenient_key {
            table = table.with_lenient_key();
        }
        Ok(table)
    }

    /// Adds the name of the table to an error of a column.
    fn named(&self, e: DataError) -> DataError {
        match e {
            DataError::Database { table, column, row, message } if table.is_empty() => {
                DataError::Database { table: self.name.clone(), column, row, message }
            }
            other => other,
        }
    }
}

/// Whether values can be ids without conversion.
fn is_id(values: &ColumnValues) -> bool {
    matches!(values, ColumnValues::Ints(_) | ColumnValues::Texts(_))
}
