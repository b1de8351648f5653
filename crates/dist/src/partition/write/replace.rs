//! Replaces the files of an older partitioning in a folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use burn_gnn_data::sync_dir;
use burn_gnn_files::internal::cut;
use burn_gnn_files::internal::read_file;

use crate::error::DistError;
use crate::partition::format::checksummed_file::{is_sum, pending_path};
use crate::partition::format::metadata::Metadata;

/// Looks for the metadata of another partitioning in the folder, including one of another version or a damaged one.
/// Returns its path and a description.
pub(super) fn other_metadata(dir: &Path, json: &Path) -> Option<(PathBuf, String)> {
    let paths = fs::read_dir(dir).ok()?.flatten().map(|e| e.path());
    paths.filter(|p| p != json && p.extension().is_some_and(|e| e == "json")).find_map(|path| {
        let bytes = read_file(&path).ok()?;
        if let Ok(Metadata { graph_name, .. }) = serde_json::from_slice(&bytes) {
            return Some((path, format!("`graph_name` {graph_name:?}")));
        }
        let what = match serde_json::from_slice::<serde_json::Value>(&bytes) {
            Ok(value) if ["part-0", "num_parts"].iter().all(|key| value.get(key).is_some()) => {
                match value.get("format_version") {
                    Some(version) => {
                        format!("a partitioning of format version {}", cut(&version.to_string()))
                    }
                    None => "a partitioning without format version".to_owned(),
                }
            }
            Ok(_) => return None,
            Err(_)
                if ["\"part-0\"", "\"num_parts\""]
                    .iter()
                    .all(|key| contains(&bytes, key.as_bytes())) =>
            {
                "a damaged partitioning".to_owned()
            }
            Err(_) => return None,
        };
        Some((path, what))
    })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|w| w == part)
}

/// Reads the metadata file; `None` if it is missing or unreadable.
pub(super) fn metadata(json: &Path) -> Option<Metadata> {
    serde_json::from_slice(&read_file(json).ok()?).ok()
}

/// Renames pending files that the metadata refers to, and removes all other pending files and temporary files of killed
/// writers. Does nothing if the metadata exists but is unreadable.
pub(super) fn settle(
    dir: &Path,
    json: &Path,
    metadata: Option<&Metadata>,
    parts: usize,
) -> Result<(), DistError> {
    if metadata.is_none() && json.exists() {
        return Ok(());
    }
    let mut folders: BTreeSet<PathBuf> =
        (0..parts).map(|p| dir.join(format!("part{p}"))).chain([dir.to_owned()]).collect();
    for (path, sum) in metadata.iter().flat_map(|m| m.files(json)).filter(|f| is_sum(&f.1)) {
        let new = pending_path(&path, &sum);
        if new.exists() {
            fs::rename(&new, &path).map_err(DistError::io(&path))?;
        }
        folders.extend(path.parent().map(Path::to_owned));
    }
    for folder in folders {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| is_leftover(name, folder == dir)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        if folder.is_dir() {
            sync_dir(&folder).map_err(DistError::io(&folder))?;
        }
        if folder != dir {
            // Removes the empty folder of a part that no metadata refers to.
            let _ = fs::remove_dir(&folder);
        }
    }
    Ok(())
}

/// Names of the files in the folder of the metadata, and in the folders of parts.
const MAP_FILES: [&str; 2] = ["node_map.npy", "edge_map.npy"];
const PART_FILES: [&str; 4] =
    ["graph.safetensors", "node_feats.safetensors", "edge_feats.safetensors", "extras.safetensors"];

pub(super) fn is_ours(name: &str) -> bool {
    MAP_FILES.contains(&name) || PART_FILES.contains(&name)
}

/// Whether a file is a pending or temporary file of a killed write. The caller holds the lock of the folder, so no
/// other process is writing it.
fn is_leftover(name: &str, in_metadata_folder: bool) -> bool {
    let names: &[&str] = if in_metadata_folder { &MAP_FILES } else { &PART_FILES };
    names.iter().filter_map(|file| file.split_once('.')).any(|(stem, end)| {
        let sum = name
            .strip_prefix(stem)
            .and_then(|n| n.strip_prefix('-')?.strip_suffix(end)?.strip_suffix('.'));
        let random = name.strip_prefix('.').and_then(|n| {
            n.strip_prefix(stem)?.strip_prefix('.')?.strip_prefix(end)?.strip_prefix(".tmp")
        });
        sum.is_some_and(|s| is_sum(&format!("xxh3:{s}"))) || random.is_some_and(|r| r.len() == 6)
    })
}
