//! Tests of databases: every kind of bad data, both layouts, and real data.

mod csv;
mod keys;
mod rel_f1;
mod relbench;
mod suggest;
mod values;
mod window_task;
mod written;

use std::path::{Path, PathBuf};

use burn_gnn_graph::Texts;

use super::column::{ColumnKind, ColumnValues, DatabaseColumn};
use super::database::Database;
use super::table::DatabaseTable;

const DAY: i64 = 86_400_000_000;

/// A temporary folder of small files.
struct Files(tempfile::TempDir);

impl Files {
    /// With a `schema.json` of tables, and the files of the tables.
    fn new(tables: &str, files: &[(&str, &str)]) -> Self {
        let dir = Self(tempfile::tempdir().unwrap());
        dir.put("schema.json", format!(r#"{{"database": "small", "tables": {tables}}}"#));
        for (name, text) in files {
            dir.put(name, text);
        }
        dir
    }
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
    fn path(&self) -> &Path {
        self.0.path()
    }
    fn open(&self) -> Database {
        Database::open(self.path()).unwrap()
    }
    /// The error, without the path of the folder.
    fn error(&self) -> String {
        let e = Database::open(self.path()).unwrap_err().to_string();
        e.replace(&format!("{}/", self.path().display()), "")
    }
}

fn ints(name: &str, values: &[i64]) -> DatabaseColumn {
    DatabaseColumn::new(name, ColumnKind::Number, ColumnValues::Ints(values.to_vec())).unwrap()
}

fn floats(name: &str, values: &[f64]) -> DatabaseColumn {
    DatabaseColumn::new(name, ColumnKind::Number, ColumnValues::Floats(values.to_vec())).unwrap()
}

fn texts(name: &str, values: &[&str]) -> DatabaseColumn {
    let values: Texts = values.iter().collect();
    DatabaseColumn::new(name, ColumnKind::Text, ColumnValues::Texts(values)).unwrap()
}

fn times(name: &str, values: &[i64]) -> DatabaseColumn {
    DatabaseColumn::new(name, ColumnKind::Time, ColumnValues::Times(values.to_vec())).unwrap()
}

fn table(name: &str, columns: Vec<DatabaseColumn>) -> DatabaseTable {
    DatabaseTable::new(name, columns).unwrap()
}
