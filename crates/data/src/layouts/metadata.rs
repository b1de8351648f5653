//! Shares metadata, keys and id checks between data sets and knowledge graphs.

use std::path::Path;

use burn_gnn_files::DataError;
use serde::Deserialize;

use crate::files::check_version;

/// Name of the description.
pub(crate) const METADATA: &str = "metadata.json";
/// The layout version that this reader knows.
const VERSION: u32 = 1;
/// Value of `layout` in the description of a knowledge graph.
pub(crate) const TRIPLES: &str = "triples";

/// What is looked at before the rest of a description.
#[derive(Deserialize)]
pub(crate) struct Layout {
    pub(crate) layout: Option<String>,
    layout_version: Option<serde_json::Value>,
}

impl Layout {
    /// Refuses another version of the layout.
    pub(crate) fn check_version(&self, path: &Path) -> Result<(), DataError> {
        check_version(path, self.layout_version.as_ref(), VERSION)
    }
}

/// A file with a part of a split.
#[derive(Deserialize)]
pub(crate) struct Part {
    pub(crate) file: String,
    pub(crate) count: u64,
}
