//! Defines the metadata file of a partitioned graph.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::checksummed_file::{inside, text};
use crate::error::DistError;

/// Version of the metadata and part files that this crate writes and reads.
pub(crate) const FORMAT_VERSION: u32 = 3;

/// Key of the metadata entry in part files; its value is `version:fingerprint`. There is only one entry, because the
/// order of several would be random and files of equal content must be equal byte for byte.
pub(crate) const STAMP: &str = "burn_gnn_partition";

/// Names of the files of a part, relative to the metadata file, and their checksums.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PartFiles {
    pub(crate) node_feats: String,
    pub(crate) edge_feats: String,
    pub(crate) part_graph: String,
    /// File of lists, texts and ids, if the graph has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) extras: Option<String>,
    /// Checksums by the names of the fields above.
    pub(crate) checksums: BTreeMap<String, String>,
}

impl PartFiles {
    /// Keys and names of the files.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let files = [
            ("part_graph", &self.part_graph),
            ("node_feats", &self.node_feats),
            ("edge_feats", &self.edge_feats),
        ];
        files
            .into_iter()
            .chain(self.extras.iter().map(|name| ("extras", name)))
            .map(|(key, name)| (key, name.as_str()))
    }
}

/// Owners of nodes or edges: ranges of global ids per type, or a file with the owner of each global id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OwnerMap {
    Ranges(BTreeMap<String, Vec<[u64; 2]>>),
    File(String),
}

/// The metadata file: DGL's keys, then those of this format.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) graph_name: String,
    pub(crate) num_nodes: u64,
    pub(crate) num_edges: u64,
    pub(crate) part_method: String,
    pub(crate) num_parts: usize,
    pub(crate) halo_hops: usize,
    pub(crate) node_map: OwnerMap,
    pub(crate) edge_map: OwnerMap,
    pub(crate) ntypes: BTreeMap<String, u64>,
    pub(crate) etypes: BTreeMap<String, u64>,
    pub(crate) format_version: u32,
    pub(crate) seed: u64,
    pub(crate) edge_cut: u64,
    pub(crate) num_trainers_per_machine: usize,
    /// Number of nodes and edges of each type, which owner files do not contain; empty if owners are ranges.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) type_counts: BTreeMap<String, u64>,
    /// Checksums of the owner files, by `node_map` and `edge_map`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) checksums: BTreeMap<String, String>,
    /// Fingerprint of the partitioning in hexadecimal; part files contain it too.
    pub(crate) fingerprint: String,
    /// Checksum of the metadata, computed with an empty text in this field.
    pub(crate) checksum: String,
    /// `part-<i>`, and all unknown keys.
    #[serde(flatten)]
    pub(crate) parts: BTreeMap<String, serde_json::Value>,
}

impl Metadata {
    /// The checksum of all other entries, independent of whitespace in the file.
    pub(crate) fn sum(&mut self) -> String {
        let old = std::mem::take(&mut self.checksum);
        // Serialisation cannot fail: all keys are strings.
        let sum = text(XxHash3_64::oneshot(&serde_json::to_vec(self).unwrap_or_default()));
        self.checksum = old;
        sum
    }

    /// Returns an error if two entries name the same file: reading a file once per entry would take time out of
    /// proportion to the size of the folder.
    pub(crate) fn check_paths(&self, json: &Path) -> Result<(), DistError> {
        let mut named: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut add = |entry: String, name: &str| match named
            .insert(inside(json, name)?, entry.clone())
        {
            None => Ok(()),
            Some(first) => {
                let message = format!(
                    "`{entry}`: expected a file that no other entry names, got {name:?}, which `{first}` names too"
                );
                Err(DistError::format(json, format!("{message}; partition the graph again")))
            }
        };
        for (key, map) in [("node_map", &self.node_map), ("edge_map", &self.edge_map)] {
            if let OwnerMap::File(name) = map {
                add(key.to_owned(), name)?;
            }
        }
        for p in 0..self.num_parts {
            let part = format!("part-{p}");
            // A missing or malformed entry is an error when the part is read.
            let files = self.parts.get(&part).and_then(|files| PartFiles::deserialize(files).ok());
            files
                .iter()
                .flat_map(PartFiles::names)
                .try_for_each(|(key, name)| add(format!("{part}/{key}"), name))?;
        }
        Ok(())
    }

    /// All files that the metadata names, with their checksums. Paths that lead out of the folder are left out.
    pub(crate) fn files(&self, json: &Path) -> Vec<(PathBuf, String)> {
        let mut files = vec![];
        let mut add = |name: &str, sum: Option<&String>| {
            if let (Ok(path), Some(sum)) = (inside(json, name), sum) {
                files.push((path, sum.clone()));
            }
        };
        for (key, map) in [("node_map", &self.node_map), ("edge_map", &self.edge_map)] {
            if let OwnerMap::File(name) = map {
                add(name, self.checksums.get(key));
            }
        }
        for (key, part) in &self.parts {
            if let (true, Ok(part)) =
                (key.starts_with("part-"), serde_json::from_value::<PartFiles>(part.clone()))
            {
                part.names().for_each(|(key, name)| add(name, part.checksums.get(key)));
            }
        }
        files
    }
}
