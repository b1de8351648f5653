//! The entry `burn_gnn` of a manifest: what RelBench's format cannot express.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::column::ColumnKind;

/// File name of the manifest of a database, and of a task.
pub(super) const MANIFEST: &str = "manifest.yaml";

/// Folder of the original keys.
pub(crate) const KEYS: &str = "keys";

/// What RelBench's format has no entry for. Its tools ignore it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DatabaseExtension {
    pub(crate) tables: BTreeMap<String, TableExtension>,
    /// Tables to whose rows tasks refer by their numbers, although they have keys.
    pub(crate) renumbered: BTreeSet<String>,
}

/// The extension of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TableExtension {
    pub(crate) kinds: BTreeMap<String, ColumnKind>,
    /// A composite key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) primary_key: Option<Vec<String>>,
    /// Composite keys, and keys that are a part of the primary key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) foreign_keys: Vec<KeyExtension>,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) lenient_key: bool,
    /// Whether a file in [`KEYS`] contains the values of key columns that `db` replaces by numbers of rows.
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) original_keys: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeyExtension {
    pub(crate) columns: Vec<String>,
    pub(crate) table: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
