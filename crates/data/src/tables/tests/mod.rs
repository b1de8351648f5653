//! Tests of tables: the examples of GraphLearn's documentation, and a test for each error.

mod builder;
mod csv;
mod dialects;
mod rows;
mod sources;

use std::path::PathBuf;

/// A temporary folder of small files.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
