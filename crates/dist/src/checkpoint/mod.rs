//! A run that goes on where it was stopped.

mod shard;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn_gnn_graph::io::{cut_text, read_file, write_atomic};
use burn_gnn_graph::{GraphError, LoaderState};
use serde::{Deserialize, Serialize};

use crate::exchange::{Unpack, agree, digest};
use crate::{DistError, DistGraph};
pub use shard::{Shard, ShardReader, ShardWriter};

const FORMAT_VERSION: u32 = 1;
const MANIFEST: &str = "checkpoint.json";

/// Checkpoints of a run on ranks, in a folder that all ranks see.
///
/// Each rank writes its rows to a file of its own in a new folder; when all are there, rank 0 replaces the manifest by renaming, and
/// only then removes the folders before. A run killed at any moment, on any rank, leaves the checkpoint that was complete last.
///
/// ```text
/// checkpoint.json        format_version, graph_name, fingerprint, num_parts, step, loader, replicated, folder, files (bytes, checksum)
/// step-<n>/rank<r>.safetensors    rows of shards: `name/tensor`
/// step-<n>/shared.safetensors     what all ranks hold alike, as bytes: model, optimizer
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoint {
    dir: PathBuf,
}

/// Where a run is, and what all ranks hold alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// Steps made so far.
    pub step: u64,
    /// The batch that comes next.
    pub loader: LoaderState,
    /// By name, such as a model's and an optimizer's record as bytes. Rank 0 writes its own.
    pub replicated: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format_version: u32,
    graph_name: String,
    /// Hexadecimal: that of the partitioning.
    fingerprint: String,
    num_parts: usize,
    step: u64,
    loader: LoaderState,
    folder: String,
    files: BTreeMap<String, FileInfo>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileInfo {
    bytes: u64,
    /// Hexadecimal.
    checksum: String,
}

impl FileInfo {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, checksum: format!("{:016x}", checksum(bytes)) }
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let last = rest.iter().fold(rest.len() as u64, |w, &b| w << 8 | u64::from(b));
    digest(words.iter().map(|w| u64::from_le_bytes(*w)).chain([last]))
}

impl Checkpoint {
    /// In `dir`, which is made if missing.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the state and the rows of `shards`, which all ranks name in the same order. Collective.
    ///
    /// # Errors
    /// A file cannot be written; two shards of one name; on all ranks.
    pub fn save(&self, graph: &DistGraph, state: &RunState, shards: &[&dyn Shard]) -> Result<(), DistError> {
        let comm = &**graph.comm();
        let folder = agree(comm, "checkpoint: folder", if comm.rank() == 0 { self.new_folder(state.step) } else { Ok(String::new()) })?;
        let folder = comm.broadcast("checkpoint: folder", 0, folder.into_bytes())?;
        let folder = String::from_utf8_lossy(&folder).into_owned();
        let dir = self.dir.join(&folder);
        let write = || -> Result<BTreeMap<String, FileInfo>, DistError> {
            fs::create_dir_all(&dir).map_err(DistError::io(&dir))?;
            let mut files = BTreeMap::new();
            let mut file = |name: String, bytes: Vec<u8>| -> Result<(), DistError> {
                write_atomic(dir.join(&name), |w| w.write_all(&bytes))?;
                files.insert(name, FileInfo::of(&bytes));
                Ok(())
            };
            file(rank_file(comm.rank()), ShardWriter::of(shards)?)?;
            if comm.rank() == 0 {
                file(SHARED.into(), ShardWriter::bytes(&state.replicated)?)?;
            }
            Ok(files)
        };
        let files = agree(comm, "checkpoint: files", write())?;
        let told = serde_json::to_vec(&files).map_err(|e| DistError::format(&dir, e.to_string()));
        let told = comm.all_gather("checkpoint: checksums", agree(comm, "checkpoint: names", told)?)?;
        let finish = || -> Result<(), DistError> {
            let mut all = BTreeMap::new();
            for (p, bytes) in told.iter().enumerate() {
                let files: BTreeMap<String, FileInfo> =
                    serde_json::from_slice(bytes).map_err(|_| Unpack::new(&[], p, comm.rank()).broken())?;
                all.extend(files);
            }
            let manifest = Manifest {
                format_version: FORMAT_VERSION,
                graph_name: graph.name().to_owned(),
                fingerprint: graph.fingerprint(),
                num_parts: comm.size(),
                step: state.step,
                loader: state.loader,
                folder: folder.clone(),
                files: all,
            };
            let path = self.dir.join(MANIFEST);
            let text = serde_json::to_vec_pretty(&manifest).map_err(|e| DistError::format(&path, e.to_string()))?;
            write_atomic(&path, |w| w.write_all(&text))?;
            // Nobody needs the others any more; what cannot be removed is in nobody's way.
            for old in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
                if old.file_name().to_str().is_some_and(|name| name != folder && is_ours(name)) {
                    let _ = fs::remove_dir_all(old.path());
                }
            }
            Ok(())
        };
        agree(comm, "checkpoint: manifest", if comm.rank() == 0 { finish() } else { Ok(()) })
    }

    /// Reads the checkpoint that was complete last into `shards`; `None` where there is none yet. Collective.
    ///
    /// # Errors
    /// A file that is missing or damaged, shards of other names or sizes; [`DistError::Checkpoint`] for one of another graph, partitioning
    /// or number of parts; on all ranks.
    pub fn load(&self, graph: &DistGraph, shards: &[&dyn Shard]) -> Result<Option<RunState>, DistError> {
        let comm = &**graph.comm();
        let read = || {
            let Some(manifest) = self.manifest()? else { return Ok(None) };
            self.check(graph, &manifest)?;
            let file = |name: &str| self.read(&manifest, name);
            let rows = file(&rank_file(comm.rank()))?;
            let shared = file(SHARED)?;
            let replicated = ShardReader::all_bytes(&self.dir.join(&manifest.folder).join(SHARED), &shared)?;
            Ok(Some((RunState { step: manifest.step, loader: manifest.loader, replicated }, rows, manifest.folder)))
        };
        let found = agree(comm, "checkpoint: read", read())?;
        let any = comm.all_gather("checkpoint: found", found.as_ref().map_or_else(Vec::new, |f| f.0.step.to_le_bytes().to_vec()))?;
        if let Some(p) = any.iter().position(|b| *b != any[0]) {
            let found = format!("another checkpoint on rank {p}");
            return Err(DistError::Config { arg: "dir", expected: "a folder that all ranks see".into(), found });
        }
        let Some((state, rows, folder)) = found else { return Ok(None) };
        let path = self.dir.join(folder).join(rank_file(comm.rank()));
        let load = || shards.iter().try_for_each(|s| s.load(&ShardReader::new(&path, &rows, s.name())?));
        agree(comm, "checkpoint: rows", load())?;
        Ok(Some(state))
    }

    /// A folder that the manifest does not name, for its files must stay as they are until it is replaced.
    fn new_folder(&self, step: u64) -> Result<String, DistError> {
        let name = format!("step-{step}");
        // A damaged manifest names nothing that could be lost.
        let taken = self.manifest().ok().flatten().is_some_and(|m| m.folder == name);
        Ok(if taken { format!("{name}-again") } else { name })
    }
    fn manifest(&self) -> Result<Option<Manifest>, DistError> {
        let path = self.dir.join(MANIFEST);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(GraphError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(DistError::of_file(e)),
        };
        let bad = |message: String| DistError::format(&path, message);
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| bad(format!("not a checkpoint's manifest: {e}")))?;
        match value.get("format_version").and_then(serde_json::Value::as_u64) {
            Some(v) if v == u64::from(FORMAT_VERSION) => {}
            other => return Err(bad(format!("format version {other:?}, this program reads version {FORMAT_VERSION}"))),
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(|e| bad(format!("not a checkpoint's manifest: {e}")))?;
        if !is_ours(&manifest.folder) {
            return Err(bad(format!("`folder`: expected `step-<n>`, got {:?}", manifest.folder)));
        }
        Ok(Some(manifest))
    }

    fn check(&self, graph: &DistGraph, manifest: &Manifest) -> Result<(), DistError> {
        let parts = graph.comm().size();
        let differs = [
            ("graph", graph.name().to_owned(), manifest.graph_name.clone(), "open that graph, or begin in another folder"),
            (
                "parts",
                parts.to_string(),
                manifest.num_parts.to_string(),
                "rows are kept by part: start as many ranks, or begin in another folder",
            ),
            ("partitioning", graph.fingerprint(), manifest.fingerprint.clone(), "open the parts that it was made with"),
        ];
        match differs.into_iter().find(|(_, expected, found, _)| expected != found) {
            None => Ok(()),
            Some((what, expected, found, remedy)) => {
                Err(DistError::Checkpoint { path: self.dir.join(MANIFEST), what, expected, found: cut_text(&found), remedy })
            }
        }
    }

    fn read(&self, manifest: &Manifest, name: &str) -> Result<Vec<u8>, DistError> {
        let path = self.dir.join(&manifest.folder).join(name);
        let info =
            manifest.files.get(name).ok_or_else(|| DistError::format(self.dir.join(MANIFEST), format!("no entry for file `{name}`")))?;
        let bytes = read_file(&path).map_err(DistError::of_file)?;
        let found = FileInfo::of(&bytes);
        if (found.bytes, &found.checksum) != (info.bytes, &info.checksum) {
            let (have, want) =
                (format!("{} bytes, checksum {}", found.bytes, found.checksum), format!("{} and {}", info.bytes, info.checksum));
            return Err(DistError::format(path, format!("damaged: {have}; the manifest says {want}")));
        }
        Ok(bytes)
    }
}

const SHARED: &str = "shared.safetensors";

fn rank_file(rank: usize) -> String {
    format!("rank{rank}.safetensors")
}

/// Whether a folder is named as checkpoints name theirs: nothing else is ever read or removed.
fn is_ours(folder: &str) -> bool {
    let number = folder.strip_prefix("step-").map(|n| n.strip_suffix("-again").unwrap_or(n));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
