//! Bounds on declared counts and ids: a short description must not allocate memory without limit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_files::internal::format_error;
use burn_gnn_graph::{GraphError, Relation};

/// Largest number of nodes of a type and of edges of a relation.
pub(crate) const LIMIT: u64 = Relation::LIMIT;

/// Returns an error if there are more rows, nodes or edges than [`LIMIT`].
pub(crate) fn within_limit(
    of: impl Display,
    what: &'static str,
    count: u64,
) -> Result<(), DataError> {
    if count <= LIMIT {
        return Ok(());
    }
    let relation = of.to_string();
    Err(DataError::Graph(GraphError::TooLarge { relation, what, count, limit: LIMIT }))
}

/// Number of nodes of a type that a description may declare without any data.
const NODES_FREE: u64 = 1 << 26;
/// Above [`NODES_FREE`], number of nodes that a description may declare for each byte of data.
const NODES_PER_BYTE: u64 = 16;

/// Converts a declared number of nodes, or returns an error if it is too large for `bytes` of data (edges, features,
/// labels). Every user of a graph allocates memory for each node, even for nodes without data.
pub(crate) fn node_count(
    described_in: &Path,
    ntype: &str,
    count: u64,
    bytes: u64,
) -> Result<usize, DataError> {
    within_limit(format_args!("node type {ntype}"), "nodes", count)?;
    let limit = NODES_FREE.max(bytes.saturating_mul(NODES_PER_BYTE));
    if count > limit {
        let why = format!(
            "node type `{ntype}`: expected at most {limit} nodes for {bytes} bytes of data, found {count}"
        );
        return Err(format_error(described_in, why));
    }
    Ok(count as usize)
}

/// Total size of the distinct files that a description names.
///
/// A file may be named several times, for example by both directions of a relation. There is a limit, so that a short
/// description cannot make the reader load the same large file many times. A missing file counts as 0 bytes; reading
/// it fails later.
pub(crate) fn referenced(
    described_in: &Path,
    files: impl IntoIterator<Item = Result<PathBuf, DataError>>,
) -> Result<u64, DataError> {
    /// How often a file may be named, on average over the bytes.
    const MOST: u64 = 4;
    /// Total size that may be named in any case.
    const FREE: u64 = 1 << 20;
    let (mut seen, mut once, mut all) = (BTreeMap::new(), 0u64, 0u64);
    for file in files {
        let len = match seen.entry(file?) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let len = std::fs::metadata(new.key()).map_or(0, |m| m.len());
                once = once.saturating_add(len);
                *new.insert(len)
            }
        };
        all = all.saturating_add(len);
    }
    let most = once.saturating_mul(MOST).saturating_add(FREE);
    if all > most {
        let why = format!(
            "file names: expected files of {once} bytes, each named at most {MOST} times on average, found {all} bytes in total"
        );
        return Err(format_error(described_in, why));
    }
    Ok(once)
}

/// Returns an error if a declared count differs from the count in a file.
pub(crate) fn same_count(
    path: &Path,
    what: &str,
    declared: u64,
    found: usize,
) -> Result<(), DataError> {
    if declared == found as u64 {
        return Ok(());
    }
    Err(format_error(path, format!("{what}: expected {declared} as declared, found {found}")))
}

/// Converts ids of an array, or returns an error for an id that is not in `0..bound`.
pub(crate) fn ids_below(
    path: &Path,
    what: &str,
    ids: Vec<i64>,
    bound: usize,
) -> Result<Vec<u32>, DataError> {
    let checked = |(i, v): (usize, i64)| {
        u32::try_from(v).ok().filter(|&v| (v as usize) < bound).ok_or_else(|| {
            format_error(path, format!("{what} of entry {i}: expected 0..{bound}, found {v}"))
        })
    };
    ids.into_iter().enumerate().map(checked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_without_data_are_limited() {
        let json = Path::new("d/m.json");
        assert_eq!(node_count(json, "a", 1 << 26, 0).unwrap(), 1 << 26);
        assert_eq!(node_count(json, "a", 16 << 23, 1 << 23).unwrap(), 16 << 23);
        let e = node_count(json, "a", (1 << 26) + 1, 3).unwrap_err();
        assert_eq!(
            e.to_string(),
            "d/m.json: node type `a`: expected at most 67108864 nodes for 3 bytes of data, found 67108865"
        );
        assert!(matches!(
            node_count(json, "a", u64::MAX, u64::MAX),
            Err(DataError::Graph(GraphError::TooLarge { .. }))
        ));
    }
}
