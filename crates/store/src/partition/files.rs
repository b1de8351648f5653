//! Names and describes the files of parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_structure::EdgeType;
use serde::{Deserialize, Serialize};

use crate::error::{StoreError, format};
use crate::sections::SectionFile;

/// Kind of the file with the nodes of a part, and its sections: types and counts as JSON, then ids of all types, in the
/// order of the types.
pub(super) const KIND: &str = "part";
pub(super) const TYPES: &str = "types";
pub(super) const INNER: &str = "inner";
pub(super) const HALO: &str = "halo";
pub(super) const OWNERS: &str = "owners";
/// A section of the edge files of a part: the position of each inner node's row in the file of the whole graph.
pub(super) const STARTS: &str = "starts";
/// A value in the header of all files of a part: the fingerprint of the partitioning.
pub(super) const FINGERPRINT: &str = "fingerprint";
/// Marks a node without a part, or without a local id in a part.
pub(super) const NONE: u32 = u32::MAX;

/// The types and counts in the node file of a part.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Types {
    pub(super) nodes: Vec<NodeCounts>,
    pub(super) edges: Vec<EdgeType>,
}

/// Number of nodes of a type: in the whole graph, inner nodes of the part, and halo nodes of the part.
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

/// Reads the types and counts in the node file of a part.
pub(super) fn types(file: &Arc<SectionFile>) -> Result<Types, StoreError> {
    let none = || format(&file.path, format!("expected a section `{TYPES}`, found none"));
    let section = file.section(TYPES).ok_or_else(none)?;
    section.check_range(0..section.bytes().len())?;
    serde_json::from_slice(section.bytes())
        .map_err(|e| format(&file.path, format!("`{TYPES}`: expected a description, found {e}")))
}

/// The number of the part, and the number of the edge type for an edge file, of a file with the name of a part's file.
pub(super) fn part_file(name: &str) -> Option<(usize, Option<usize>)> {
    let (part, end) = name.strip_prefix("part-")?.split_once('.')?;
    let number = |text: &str| Some(text.parse::<u32>().ok()? as usize);
    let relation = if end == "nodes" { None } else { Some(number(end.strip_suffix(".csc")?)?) };
    Some((number(part)?, relation))
}
