//! Opens the parts of a graph in a folder.

use std::path::{Path, PathBuf};

use super::files::{KIND, NONE, nodes_path, part_file, types};
use super::stored_part::StoredPart;
use crate::error::{StoreError, format};
use crate::sections::SectionFile;

/// The parts of a graph in a folder. A part has its inner nodes with all their in-edges, and the halo nodes that are
/// sources of these edges.
#[derive(Clone, Debug)]
pub struct StoredParts {
    pub(super) dir: PathBuf,
    pub(super) parts: usize,
    pub(super) relations: usize,
}

impl StoredParts {
    /// Opens the parts in `dir`.
    ///
    /// # Errors
    /// `dir` has no part 0; as [`part`](Self::part).
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
    /// Bytes of all files of the parts in the folder.
    ///
    /// # Cost
    /// One listing of the folder, for any number of parts in the headers.
    pub fn bytes(&self) -> u64 {
        let is_of_parts = |name: &str| {
            part_file(name).is_some_and(|(part, relation)| {
                part < self.parts && relation.is_none_or(|e| e < self.relations)
            })
        };
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_of_parts))
            .map(|entry| std::fs::metadata(entry.path()).map_or(0, |m| m.len()))
            .sum()
    }

    /// Opens one part. [`StoredPart::open`] does not need the files of part 0.
    ///
    /// # Errors
    /// As [`StoredPart::open`].
    pub fn part(&self, part: usize) -> Result<StoredPart, StoreError> {
        StoredPart::open(&self.dir, part)
    }
}
