//! Common fields of `metadata.json` of data sets and knowledge graphs.

use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::files::check_version;

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
    /// Returns an error for another version of the layout.
    pub(crate) fn check_version(&self, path: &Path) -> Result<(), DataError> {
        check_version(path, self.layout_version.as_ref(), VERSION)
    }
}

/// A file with one part of a split.
#[derive(Deserialize)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) count: u64,
}
