//! Replaces the files of an older partitioning in a folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use burn_gnn_data::{read_file, sync_dir};
use burn_gnn_files::internal::cut;

use crate::error::DistError;
use crate::partition::format::checksummed_file::{beside, is_sum};
use crate::partition::format::metadata::Metadata;

/// Another file that is the metadata of a partitioning in the folder, and what it is: also one that this program cannot
/// read, of another version or damaged.
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

/// The metadata in a folder, if it can be read.
pub(super) fn metadata(json: &Path) -> Option<Metadata> {
    serde_json::from_slice(&read_file(json).ok()?).ok()
}

/// Files beside others get the names of those if the metadata counts on them, and are removed if it does not; so are
/// temporary files of killed writers. Nothing is done where there is metadata that cannot be read.
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
        let new = beside(&path, &sum);
        if new.exists() {
            fs::rename(&new, &path).map_err(DistError::io(&path))?;
        }
        folders.extend(path.parent().map(Path::to_owned));
    }
    for folder in folders {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| is_left(name, folder == dir)) {
                let _ = fs::remove_file(entry.path());
            }
        }
        if folder.is_dir() {
            sync_dir(&folder).map_err(DistError::io(&folder))?;
        }
        if folder != dir {
            // A part that was never announced, once it is empty.
            let _ = fs::remove_dir(&folder);
        }
    }
    Ok(())
}

/// Names of the files beside the metadata, and of those in the folders of parts.
const BESIDE_METADATA: [&str; 2] = ["node_map.npy", "edge_map.npy"];
const OF_PARTS: [&str; 4] =
    ["graph.safetensors", "node_feats.safetensors", "edge_feats.safetensors", "extras.safetensors"];

pub(super) fn is_ours(name: &str) -> bool {
    BESIDE_METADATA.contains(&name) || OF_PARTS.contains(&name)
}

/// Whether a file is one beside another, or the temporary file of one. The caller's lock says that nobody writes it.
fn is_left(name: &str, beside_metadata: bool) -> bool {
    let names: &[&str] = if beside_metadata { &BESIDE_METADATA } else { &OF_PARTS };
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
