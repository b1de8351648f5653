//! Partitions a graph in files without loading its edges into memory.

mod assign;
mod assignment;
mod graph_files;
mod part;
mod reader;
mod row_stream;
mod verify;
mod write;

use std::path::{Path, PathBuf};

use burn_gnn_structure::EdgeType;
use serde::{Deserialize, Serialize};

pub use assign::{StreamCut, StreamMethod};
pub use assignment::Assignment;
pub use graph_files::{GraphFiles, Relations};
pub use part::StoredPart;

use crate::error::{StoreError, format};
use crate::sections::SectionFile;

/// Kind of the file of a part's nodes, and its sections: types and counts as JSON, then ids of all types, type by
/// type in the order of the types.
const KIND: &str = "part";
const TYPES: &str = "types";
const INNER: &str = "inner";
const HALO: &str = "halo";
const OWNERS: &str = "owners";
/// A section of the files of a part's relations: where the row of each inner node begins in the file of the whole
/// graph.
const STARTS: &str = "starts";
/// A fact of all files of a part: the fingerprint of the partitioning.
const FINGERPRINT: &str = "fingerprint";
/// No part, no row in the part.
const NONE: u32 = u32::MAX;

/// What the file of a part's nodes says of types.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Types {
    nodes: Vec<NodeCounts>,
    edges: Vec<EdgeType>,
}

/// Nodes of a type: of the whole graph, that the part owns, and that its edges come from beside these.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeCounts {
    name: String,
    total: u64,
    inner: u64,
    halo: u64,
}

/// Parts of a graph in a folder: of each its inner nodes with all of their in-edges, and the halo nodes where those
/// come from.
#[derive(Clone, Debug)]
pub struct StoredParts {
    dir: PathBuf,
    parts: usize,
    relations: usize,
}

fn nodes_path(dir: &Path, part: usize) -> PathBuf {
    dir.join(format!("part-{part:05}.nodes"))
}
fn edges_path(dir: &Path, part: usize, etype: usize) -> PathBuf {
    dir.join(format!("part-{part:05}.{etype}.csc"))
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

/// What the file of a part's nodes says of types.
fn types(file: &std::sync::Arc<SectionFile>) -> Result<Types, StoreError> {
    let none = || format(&file.path, format!("expected a section `{TYPES}`, found none"));
    let section = file.section(TYPES).ok_or_else(none)?;
    section.check_range(0..section.bytes().len())?;
    serde_json::from_slice(section.bytes())
        .map_err(|e| format(&file.path, format!("`{TYPES}`: expected a description, found {e}")))
}
