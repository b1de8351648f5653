//! Saves and resumes distributed training runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burn_gnn_data::{DirLock, create_dirs, lock_dir, sync_dir, write_atomic};
use burn_gnn_files::DataError;
use burn_gnn_files::internal::cut;
use burn_gnn_files::internal::read_file;
use burn_gnn_sampling::LoaderState;
use serde::{Deserialize, Serialize};

use crate::error::DistError;
use crate::exchange::{agree, digest, malformed};
use crate::graph::DistGraph;
use crate::shard::{Shard, ShardReader, ShardWriter};

const FORMAT_VERSION: u32 = 2;
const MANIFEST: &str = "checkpoint.json";
/// How long a save waits for the lock of the folder.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Checkpoints of a run on ranks, in a folder that all ranks can access.
///
/// Each rank writes its rows to a separate file in a new folder and syncs it to disk. After all ranks have written,
/// rank 0 replaces the manifest by a rename and removes the previous folder. If the run is killed at any time on any
/// rank, the disk is full, or the power fails, the folder contains the last complete checkpoint. Files of an unfinished
/// save are removed when it fails or, if the run was killed, by the next [`save`](Self::save) or [`load`](Self::load).
///
/// ```text
/// checkpoint.json        format_version, checksum (of this file), graph_name, fingerprint, num_parts, settings, step, loader, folder,
///                        files (bytes, checksum)
/// step-<n>/rank<r>.safetensors    rows of shards: `name/tensor`
/// step-<n>/shared.safetensors     replicated state as bytes: model, optimizer
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoint {
    dir: PathBuf,
    settings: BTreeMap<String, String>,
}

/// Progress of a run, and the state that is replicated on all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// Number of steps so far.
    pub step: u64,
    /// Position of the loader: the next batch.
    pub loader: LoaderState,
    /// Replicated state by name, such as the records of a model and an optimizer as bytes. Rank 0 writes its copy.
    pub replicated: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format_version: u32,
    /// Checksum of all other entries, in hexadecimal.
    checksum: String,
    graph_name: String,
    /// Fingerprint of the partitioning, in hexadecimal.
    fingerprint: String,
    num_parts: usize,
    settings: BTreeMap<String, String>,
    step: u64,
    loader: LoaderState,
    folder: String,
    files: BTreeMap<String, FileInfo>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileInfo {
    bytes: u64,
    /// In hexadecimal.
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

impl Manifest {
    /// The checksum of all other entries, independent of whitespace in the file.
    fn sum(&mut self) -> String {
        let old = std::mem::take(&mut self.checksum);
        // Serialisation cannot fail: all keys are strings.
        let sum = format!("{:016x}", checksum(&serde_json::to_vec(self).unwrap_or_default()));
        self.checksum = old;
        sum
    }
}

impl Checkpoint {
    /// Checkpoints in `dir`, which is created if needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), settings: BTreeMap::new() }
    }
    /// Adds a setting that must not change when the run is resumed. It is stored in every checkpoint, and
    /// [`load`](Self::load) returns an error for a checkpoint with another value or with settings of other names.
    ///
    /// Add the batch size, since [`RunState::loader`] counts batches. Add fan-outs and seeds if a resumed run must have
    /// the same losses as an uninterrupted one. Leave out settings that may change: a run that is resumed with another
    /// learning rate uses it from the next step on, and keeps the moments of optimizers.
    ///
    /// ```
    /// use burn_gnn_dist::Checkpoint;
    /// let kept = Checkpoint::new("kept").with_setting("batch", 64).with_setting("fanouts", "10,10");
    /// # let _ = kept;
    /// ```
    #[must_use]
    pub fn with_setting(mut self, name: impl Into<String>, value: impl Display) -> Self {
        self.settings.insert(name.into(), value.to_string());
        self
    }
    /// The folder of the checkpoints.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the state and the rows of `shards`, which must be in the same order on all ranks. Collective.
    ///
    /// # Errors
    /// On all ranks: a file cannot be written; two shards have the same name; another run is saving to this folder. The
    /// previous checkpoint is then unchanged, and the files of this one are removed.
    pub fn save(
        &self,
        graph: &DistGraph,
        state: &RunState,
        shards: &[&dyn Shard],
    ) -> Result<(), DistError> {
        let comm = &**graph.comm();
        let begun = if comm.rank() == 0 { self.begin(state.step).map(Some) } else { Ok(None) };
        let begun = agree(comm, "checkpoint: folder", begun)?;
        let name =
            begun.as_ref().map_or_else(Vec::new, |(folder, _lock)| folder.clone().into_bytes());
        let saved = comm
            .broadcast("checkpoint: folder", 0, name)
            .map_err(DistError::from)
            .and_then(|name| {
                let exclusive = begun.as_ref().is_some_and(|(_, lock)| lock.is_exclusive());
                self.save_to(&String::from_utf8_lossy(&name), exclusive, graph, state, shards)
            });
        if let (Err(_), Some((folder, _lock))) = (&saved, &begun) {
            // Keeps the folder if the manifest already refers to it and a later step failed.
            if !matches!(self.manifest(), Ok(Some(m)) if m.folder == *folder) {
                let _ = fs::remove_dir_all(self.dir.join(folder));
            }
        }
        saved
    }

    /// `exclusive`: whether the lock, which rank 0 holds, excludes all other runs.
    fn save_to(
        &self,
        folder: &str,
        exclusive: bool,
        graph: &DistGraph,
        state: &RunState,
        shards: &[&dyn Shard],
    ) -> Result<(), DistError> {
        let comm = &**graph.comm();
        let dir = self.dir.join(folder);
        let write = || -> Result<BTreeMap<String, FileInfo>, DistError> {
            create_dirs(&dir).map_err(DistError::io(&dir))?;
            let mut files = BTreeMap::new();
            let mut file = |name: String,
                            content: &dyn Fn(&Path) -> Result<Vec<u8>, DistError>|
             -> Result<(), DistError> {
                let path = dir.join(&name);
                let bytes = content(&path)?;
                write_atomic(&path, |w| w.write_all(&bytes))?;
                files.insert(name, FileInfo::of(&bytes));
                Ok(())
            };
            file(rank_file(comm.rank()), &|path| ShardWriter::of(path, shards))?;
            if comm.rank() == 0 {
                file(SHARED.into(), &|path| ShardWriter::bytes(path, &state.replicated))?;
            }
            Ok(files)
        };
        let files = agree(comm, "checkpoint: files", write())?;
        let sums = serde_json::to_vec(&files).map_err(|e| DistError::format(&dir, e.to_string()));
        let sums =
            comm.all_gather("checkpoint: checksums", agree(comm, "checkpoint: names", sums)?)?;
        let finish = || -> Result<(), DistError> {
            let mut all = BTreeMap::new();
            for (p, bytes) in sums.iter().enumerate() {
                let files: BTreeMap<String, FileInfo> =
                    serde_json::from_slice(bytes).map_err(|_| malformed(p, comm.rank()))?;
                all.extend(files);
            }
            let mut manifest = Manifest {
                format_version: FORMAT_VERSION,
                checksum: String::new(),
                graph_name: graph.name().to_owned(),
                fingerprint: graph.fingerprint(),
                num_parts: comm.size(),
                settings: self.settings.clone(),
                step: state.step,
                loader: state.loader,
                folder: folder.to_owned(),
                files: all,
            };
            manifest.checksum = manifest.sum();
            let path = self.dir.join(MANIFEST);
            let text = serde_json::to_vec_pretty(&manifest)
                .map_err(|e| DistError::format(&path, e.to_string()))?;
            // Makes the new folder durable before the manifest refers to it.
            sync_dir(&self.dir).map_err(DistError::io(&self.dir))?;
            write_atomic(&path, |w| w.write_all(&text))?;
            // Older folders are no longer needed. Without an exclusive lock another run may be writing one of them. A
            // folder that cannot be removed does no harm.
            if exclusive {
                self.clean();
            }
            Ok(())
        };
        agree(comm, "checkpoint: manifest", if comm.rank() == 0 { finish() } else { Ok(()) })
    }

    /// Reads the last complete checkpoint into `shards`; `None` if there is none. Collective.
    ///
    /// # Errors
    /// On all ranks: a file is missing or damaged; shards have other names or sizes; [`DistError::Checkpoint`] if the
    /// graph, the partitioning, the number of parts or a [setting](Self::with_setting) differs.
    pub fn load(
        &self,
        graph: &DistGraph,
        shards: &[&dyn Shard],
    ) -> Result<Option<RunState>, DistError> {
        let comm = &**graph.comm();
        let read = || {
            let Some(manifest) = self.manifest()? else { return Ok(None) };
            self.check(graph, &manifest)?;
            let file = |name: &str| self.read(&manifest, name);
            let rows = file(&rank_file(comm.rank()))?;
            let shared = file(SHARED)?;
            let replicated =
                ShardReader::all_bytes(&self.dir.join(&manifest.folder).join(SHARED), &shared)?;
            Ok(Some((
                RunState { step: manifest.step, loader: manifest.loader, replicated },
                rows,
                manifest,
            )))
        };
        let found = agree(comm, "checkpoint: read", read())?;
        if comm.rank() == 0
            && found.is_some()
            && let Ok(Some(lock)) = lock_dir(&self.dir)
        {
            // Only with an exclusive lock: otherwise another run may be writing a folder.
            if lock.is_exclusive() {
                self.clean();
            }
        }
        let any = comm.all_gather(
            "checkpoint: found",
            found.as_ref().map_or_else(Vec::new, |f| f.2.checksum.clone().into_bytes()),
        )?;
        if let Some(p) = any.iter().position(|b| *b != any[0]) {
            let found = format!("another checkpoint on rank {p}");
            let expected =
                "the same checkpoint on all ranks: a folder that all ranks can access, to which no other run saves"
                    .into();
            return Err(DistError::Config { arg: "dir", expected, found });
        }
        let Some((state, rows, manifest)) = found else { return Ok(None) };
        let path = self.dir.join(manifest.folder).join(rank_file(comm.rank()));
        let load =
            || shards.iter().try_for_each(|s| s.load(&ShardReader::new(&path, &rows, s.name())?));
        agree(comm, "checkpoint: rows", load())?;
        Ok(Some(state))
    }

    /// Locks the checkpoints and creates a new folder for the files of one.
    fn begin(&self, step: u64) -> Result<(String, DirLock), DistError> {
        create_dirs(&self.dir).map_err(DistError::io(&self.dir))?;
        let begin = Instant::now();
        let lock = loop {
            match lock_dir(&self.dir).map_err(DistError::io(&self.dir))? {
                Some(lock) => break lock,
                // A load holds the lock for a short time.
                None if begin.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(5))
                }
                None => {
                    let (expected, found) = (
                        format!("no other run that saves to {}", self.dir.display()),
                        "another save in progress".to_owned(),
                    );
                    return Err(DistError::Config { arg: "dir", expected, found });
                }
            }
        };
        // On a file system without locks another run may be saving.
        if lock.is_exclusive() {
            self.clean();
        }
        // The current folder must not change until the manifest is replaced, and no folder may change if the manifest
        // is damaged. So the files go to a new folder: an existing one is in use or does not belong to checkpoints.
        let mut folder = format!("step-{step}");
        for again in 1.. {
            let dir = self.dir.join(&folder);
            match fs::create_dir(&dir) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    folder = format!("step-{step}-{again}")
                }
                made => {
                    made.map_err(DistError::io(&dir))?;
                    break;
                }
            }
        }
        Ok((folder, lock))
    }

    /// Removes the folders of unfinished saves. Does nothing without a readable manifest, since then it is unknown
    /// which folder is complete.
    fn clean(&self) {
        let Ok(manifest) = self.manifest() else { return };
        let keep = manifest.map(|m| m.folder);
        for folder in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if folder
                .file_name()
                .to_str()
                .is_some_and(|name| keep.as_deref() != Some(name) && is_ours(name))
                && holds_ours(&folder.path())
            {
                let _ = fs::remove_dir_all(folder.path());
            }
        }
    }

    fn manifest(&self) -> Result<Option<Manifest>, DistError> {
        let path = self.dir.join(MANIFEST);
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(DataError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(e) => return Err(DistError::of_file(e)),
        };
        let bad = |message: String| DistError::format(&path, message);
        let value: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| bad(format!("expected the manifest of a checkpoint: {e}")))?;
        match value.get("format_version").and_then(serde_json::Value::as_u64) {
            Some(v) if v == u64::from(FORMAT_VERSION) => {}
            _ => {
                let found = value
                    .get("format_version")
                    .map_or_else(|| "(none)".into(), |v| cut(&v.to_string()));
                let remedy = "resume with the version of this library that wrote it, or start in another folder";
                return Err(DistError::Checkpoint {
                    path,
                    what: "format version",
                    expected: FORMAT_VERSION.to_string(),
                    found,
                    remedy,
                });
            }
        }
        let mut manifest: Manifest = serde_json::from_value(value)
            .map_err(|e| bad(format!("expected the manifest of a checkpoint: {e}")))?;
        let found = manifest.sum();
        if found != manifest.checksum {
            return Err(bad(format!(
                "damaged: checksum {found}, the file declares {}",
                manifest.checksum
            )));
        }
        if !is_ours(&manifest.folder) {
            return Err(bad(format!(
                "`folder`: expected `step-<n>` or `step-<n>-<k>`, got {:?}",
                manifest.folder
            )));
        }
        Ok(Some(manifest))
    }

    fn check(&self, graph: &DistGraph, manifest: &Manifest) -> Result<(), DistError> {
        let parts = graph.comm().size();
        let differs = [
            (
                "graph",
                graph.name().to_owned(),
                manifest.graph_name.clone(),
                "open that graph, or start in another folder",
            ),
            (
                "parts",
                parts.to_string(),
                manifest.num_parts.to_string(),
                "rows are stored by part: start as many ranks, or start in another folder",
            ),
            (
                "partitioning",
                graph.fingerprint(),
                manifest.fingerprint.clone(),
                "open the parts that it was made with",
            ),
        ];
        let settings = self.settings.keys().chain(manifest.settings.keys()).map(|name| {
            let of = |settings: &BTreeMap<String, String>| {
                settings
                    .get(name)
                    .map_or_else(|| format!("no `{name}`"), |v| format!("`{name}` = {v}"))
            };
            (
                "setting",
                of(&self.settings),
                of(&manifest.settings),
                "use the same settings, or start in another folder",
            )
        });
        match differs.into_iter().chain(settings).find(|(_, expected, found, _)| expected != found)
        {
            None => Ok(()),
            Some((what, expected, found, remedy)) => Err(DistError::Checkpoint {
                path: self.dir.join(MANIFEST),
                what,
                expected,
                found: cut(&found),
                remedy,
            }),
        }
    }

    fn read(&self, manifest: &Manifest, name: &str) -> Result<Vec<u8>, DistError> {
        let path = self.dir.join(&manifest.folder).join(name);
        let info = manifest.files.get(name).ok_or_else(|| {
            DistError::format(self.dir.join(MANIFEST), format!("no entry for file `{name}`"))
        })?;
        let bytes = read_file(&path).map_err(DistError::of_file)?;
        let found = FileInfo::of(&bytes);
        if (found.bytes, &found.checksum) != (info.bytes, &info.checksum) {
            let (have, want) = (
                format!("{} bytes, checksum {}", found.bytes, found.checksum),
                format!("{} and {}", info.bytes, info.checksum),
            );
            return Err(DistError::format(
                path,
                format!("damaged: {have}; expected {want} as in the manifest"),
            ));
        }
        Ok(bytes)
    }
}

const SHARED: &str = "shared.safetensors";

fn rank_file(rank: usize) -> String {
    format!("rank{rank}.safetensors")
}

/// Whether a folder has the name of a checkpoint folder. No other folder is read or removed.
fn is_ours(folder: &str) -> bool {
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    folder.strip_prefix("step-").is_some_and(|n| {
        n.split_once('-').map_or(is_number(n), |(step, again)| is_number(step) && is_number(again))
    })
}

/// Whether a folder contains only files of checkpoints.
fn holds_ours(folder: &Path) -> bool {
    let ours = |name: &str| {
        let name =
            name.strip_prefix('.').and_then(|n| n.split_once(".tmp")).map_or(name, |(of, _)| of);
        let rank = name.strip_prefix("rank").and_then(|n| n.strip_suffix(".safetensors"));
        name == SHARED
            || rank.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    fs::read_dir(folder)
        .is_ok_and(|mut all| all.all(|e| e.is_ok_and(|e| e.file_name().to_str().is_some_and(ours))))
}
