//! Common fields of `metadata.json` of data sets and knowledge graphs.

use std::collections::BTreeMap;
use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::files::{check_version, format_error, read_json};

/// File name of the description.
pub(crate) const METADATA: &str = "metadata.json";
/// Supported version of the layout.
const VERSION: u32 = 1;
/// Value of `layout` in the description of a knowledge graph.
pub(crate) const TRIPLES: &str = "triples";
/// Value of `layout` in the description of two knowledge graphs for inductive link prediction.
pub(crate) const INDUCTIVE_TRIPLES: &str = "inductive_triples";
/// Value of `layout` in the description of a graph whose links are split.
pub(crate) const LINKS: &str = "links";

/// Fields that are parsed before the rest of the description.
#[derive(Deserialize)]
pub(crate) struct Layout {
    pub(crate) layout: Option<String>,
    layout_version: Option<serde_json::Value>,
}

impl Layout {
    /// Returns an error unless the description `json` has the layout `expected` in the supported version. `hint` ends the
    /// message: empty, or `; ` and the function that reads other layouts.
    pub(crate) fn expect(json: &Path, expected: &str, hint: &str) -> Result<(), DataError> {
        let probe: Self = read_json(json)?;
        if probe.layout.as_deref() != Some(expected) {
            let found = probe.layout.map_or("none".into(), |l| format!("`{l}`"));
            let why = format!("expected layout `{expected}`, found {found}{hint}");
            return Err(format_error(json, why));
        }
        probe.check_version(json)
    }

    /// Returns an error for another version of the layout.
    pub(crate) fn check_version(&self, path: &Path) -> Result<(), DataError> {
        check_version(path, self.layout_version.as_ref(), VERSION)
    }
}

/// Ends the message of [`Layout::expect`] where a data set for node classification is the likely mistake.
pub(crate) const FOR_NODES: &str = "; read data for node classification with `load_dataset`";

/// The only entry of the map in field `what` of a description.
pub(crate) fn only<'a, T>(
    json: &Path,
    what: &str,
    entries: &'a BTreeMap<String, T>,
) -> Result<(&'a str, &'a T), DataError> {
    match (entries.first_key_value(), entries.len()) {
        (Some((name, entry)), 1) => Ok((name, entry)),
        (_, n) => Err(format_error(json, format!("{what}: expected exactly one, found {n}"))),
    }
}

/// A file with one part of a split.
#[derive(Deserialize)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) count: u64,
}
