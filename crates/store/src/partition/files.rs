//! Names and describes the files of parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_structure::EdgeType;
use serde::{Deserialize, Serialize};

use crate::error::{StoreError, format};
use crate::sections::SectionFile;

/// Kind of the file of a part's nodes, and its sections: types and counts as JSON, then ids of all types, type by
/// type in the order of the types.
pub(super) const KIND: &str = "part";
pub(super) const TYPES: &str = "types";
pub(super) const INNER: &str = "inner";
pub(super) const HALO: &str = "halo";
pub(super) const OWNERS: &str = "owners";
/// A section of the files of a part's relations: where the row of each inner node begins in the file of the whole
/// graph.
pub(super) const STARTS: &str = "starts";
/// A fact of all files of a part: the fingerprint of the partitioning.
pub(super) const FINGERPRINT: &str = "fingerprint";
/// No part, no row in the part.
pub(super) const NONE: u32 = u32::MAX;

/// What the file of a part's nodes says of types.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Types {
    pub(super) nodes: Vec<NodeCounts>,
    pub(super) edges: Vec<EdgeType>,
}

/// Nodes of a type: of the whole graph, that the part owns, and that its edges come from beside these.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeCounts {
    pub(super) name: String,
    pub(super) total: u64,
    pub(super) inner: u64,
    pub(super) halo: u64,
}

pub(super) fn nodes_path(dir: &Path, part: usize) -> PathBuf {
    dir.join(format!("part-{part:05}.nodes"))
}
pub(super) fn edges_path(dir: &Path, part: usize, etype: usize) -> PathBuf {
    dir.join(format!("part-{part:05}.{etype}.csc"))
}

/// What the file of a part's nodes says of types.
pub(super) fn types(file: &Arc<SectionFile>) -> Result<Types, StoreError> {
    let none = || format(&file.path, format!("expected a section `{TYPES}`, found none"));
    let section = file.section(TYPES).ok_or_else(none)?;
    section.check_range(0..section.bytes().len())?;
    serde_json::from_slice(section.bytes())
        .map_err(|e| format(&file.path, format!("`{TYPES}`: expected a description, found {e}")))
}
