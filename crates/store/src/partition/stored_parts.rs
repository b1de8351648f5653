//! Opens the parts of a graph in a folder.

use std::path::{Path, PathBuf};

use super::files::{KIND, NONE, edges_path, nodes_path, types};
use super::stored_part::StoredPart;
use crate::error::{StoreError, format};
use crate::sections::SectionFile;

/// Parts of a graph in a folder: of each its inner nodes with all of their in-edges, and the halo nodes where those
/// come from.
#[derive(Clone, Debug)]
pub struct StoredParts {
    pub(super) dir: PathBuf,
    pub(super) parts: usize,
    pub(super) relations: usize,
}

impl StoredParts {
    /// Parts that were written to `dir`.
    ///
    /// # Errors
    /// There is none; as [`part`](Self::part).
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        let dir = dir.as_ref();
        let path = nodes_path(dir, 0);
        let file = SectionFile::open(&path, KIND)?;
        let parts = file.header.number(&path, "parts")?;
        if parts >= u64::from(NONE) {
            return Err(format(&path, format!("expected fewer than {NONE} parts, found {parts}")));
        }
        Ok(Self { dir: dir.into(), parts: parts as usize, relations: types(&file)?.edges.len() })
    }
    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.parts
    }
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        let len = |path: PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
        let of_part = |p: usize| {
            let edges = (0..self.relations).map(|e| len(edges_path(&self.dir, p, e)));
            len(nodes_path(&self.dir, p)) + edges.sum::<u64>()
        };
        (0..self.parts).map(of_part).sum()
    }

    /// Opens one part; [`StoredPart::open`] does without the files of part 0.
    ///
    /// # Errors
    /// As [`StoredPart::open`].
    pub fn part(&self, part: usize) -> Result<StoredPart, StoreError> {
        StoredPart::open(&self.dir, part)
    }
}
