//! Shares metadata keys and id checks between data sets and knowledge graphs.

use std::path::Path;

use burn_gnn_files::DataError;

use crate::files::format_error;

/// Name of the description.
pub(crate) const METADATA: &str = "metadata.json";
/// The layout version that this reader knows.
pub(crate) const VERSION: u64 = 1;
/// Value of `layout` in the description of a knowledge graph.
pub(crate) const TRIPLES: &str = "triples";

/// Ids of an array, each below `bound`.
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
