//! Sources, headers, rows, ids, graphs: what the documentation of GraphLearn shows, and one test per refusal.

mod builder;
mod csv;
mod dialects;
mod rows;
mod sources;

use std::path::PathBuf;

/// A folder of small files that goes away with the value.
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
