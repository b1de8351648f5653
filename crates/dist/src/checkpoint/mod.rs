//! Saves and resumes distributed training runs.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burn_gnn_data::{DirLock, create_dirs, lock_dir, read_file, sync_dir, write_atomic};
use burn_gnn_files::DataError;
use burn_gnn_files::internal::cut;
use burn_gnn_sampling::LoaderState;
use serde::{Deserialize, Serialize};

use crate::error::DistError;
use crate::exchange::{agree, digest, malformed};
use crate::graph::DistGraph;
use crate::shard::{Shard, ShardReader, ShardWriter};

const FORMAT_VERSION: u32 = 2;
const MANIFEST: &str = "checkpoint.json";
/// How long a save waits for another one to the same folder.
const PATIENCE: Duration = Duration::from_secs(5);

/// Checkpoints of a run on ranks, in a folder that all ranks see.
///
/// Each rank writes its rows to a file of its own in a new folder and syncs it to disk; when all are there, rank 0
/// replaces the manifest by renaming, and only then removes the folder before. A run killed at any moment, on any rank,
/// a full disk and a power failure leave the checkpoint that was complete last. What an unfinished save wrote is
/// removed when it fails or, if the run was killed, by the next [`save`](Self::save) or [`load`](Self::load).
///
/// ```text
/// checkpoint.json        format_version, checksum (of this file), graph_name, fingerprint, num_parts, settings, step, loader, folder,
///                        files (bytes, checksum)
/// step-<n>/rank<r>.safetensors    rows of shards: `name/tensor`
/// step-<n>/shared.safetensors     what all ranks hold alike, as bytes: model, optimizer
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoint {
    dir: PathBuf,
    settings: BTreeMap<String, String>,
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
    /// Hexadecimal: of all other entries.
    checksum: String,
    graph_name: String,
    /// Hexadecimal: that of the partitioning.
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

impl Manifest {
    /// The checksum of all other entries, whatever spaces and line ends the file has.
    fn sum(&mut self) -> String {
        let old = std::mem::take(&mut self.checksum);
        // Keys are texts and nothing here fails to be written.
        let sum = format!("{:016x}", checksum(&serde_json::to_vec(self).unwrap_or_default()));
        self.checksum = old;
        sum
    }
}

impl Checkpoint {
    /// In `dir`, which is made if missing.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), settings: BTreeMap::new() }
    }
    /// A setting that must not change when a run goes on. It is kept with every checkpoint, and [`load`](Self::load)
    /// refuses a checkpoint that has another value, or settings of other names.
    ///
    /// The size of batches belongs here, since [`RunState::loader`] counts batches, and so do fan-outs and seeds, if
    /// the run is to have the losses of one that was never stopped. Settings that may change are left out: a run that
    /// goes on with another learning rate takes its next step with that one, moments of optimizers are kept.
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
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the state and the rows of `shards`, which all ranks name in the same order. Collective.
    ///
    /// # Errors
    /// A file cannot be written; two shards of one name; another run that saves to this folder at this moment; on all
    /// ranks. The checkpoint before is still there, and nothing of this one.
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
            // Unless the manifest got its name and something failed behind it: then it is the checkpoint.
            if !matches!(self.manifest(), Ok(Some(m)) if m.folder == *folder) {
                let _ = fs::remove_dir_all(self.dir.join(folder));
            }
        }
        saved
    }

    /// `exclusive`: nobody else saves to the folder, known to the rank that has the lock.
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
            // The new folder is a name in this one.
            sync_dir(&self.dir).map_err(DistError::io(&self.dir))?;
            write_atomic(&path, |w| w.write_all(&text))?;
            // The others are no longer needed, unless another run may be saving; what cannot be removed is in nobody's
            // way.
            if exclusive {
                self.clean();
            }
            Ok(())
        };
        agree(comm, "checkpoint: manifest", if comm.rank() == 0 { finish() } else { Ok(()) })
    }

    /// Reads the checkpoint that was complete last into `shards`; `None` where there is none yet. Collective.
    ///
    /// # Errors
    /// A file that is missing or damaged, shards of other names or sizes; [`DistError::Checkpoint`] for one of another
    /// graph, partitioning, number of parts or [setting](Self::with_setting); on all ranks.
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
            // Not while somebody saves, who alone knows what is unfinished.
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
                "one checkpoint in a folder that all ranks see, and no other run that saves to it"
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

    /// A new folder for the files of a checkpoint, and the lock of whoever writes one.
    fn begin(&self, step: u64) -> Result<(String, DirLock), DistError> {
        create_dirs(&self.dir).map_err(DistError::io(&self.dir))?;
        let begin = Instant::now();
        let lock = loop {
            match lock_dir(&self.dir).map_err(DistError::io(&self.dir))? {
                Some(lock) => break lock,
                // Whoever loads holds it for a moment.
                None if begin.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    let (expected, found) = (
                        format!("no other run that saves to {}", self.dir.display()),
                        "another one at work".to_owned(),
                    );
                    return Err(DistError::Config { arg: "dir", expected, found });
                }
            }
        };
        // Without locks somebody else may be saving at this moment.
        if lock.is_exclusive() {
            self.clean();
        }
        // The folder that the manifest names stays as it is until the manifest is replaced; so does every other one if
        // it is damaged. One that `clean` left is what the manifest names, or somebody else's: never removed.
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

    /// Removes the folders of saves that did not finish. Without a manifest that can be read it is unknown which these
    /// are.
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
            .map_err(|e| bad(format!("not a checkpoint's manifest: {e}")))?;
        match value.get("format_version").and_then(serde_json::Value::as_u64) {
            Some(v) if v == u64::from(FORMAT_VERSION) => {}
            _ => {
                let found = value
                    .get("format_version")
                    .map_or_else(|| "(none)".into(), |v| cut(&v.to_string()));
                let remedy = "go on with the version of this library that wrote it, or begin in another folder";
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
            .map_err(|e| bad(format!("not a checkpoint's manifest: {e}")))?;
        let found = manifest.sum();
        if found != manifest.checksum {
            return Err(bad(format!(
                "damaged: checksum {found}, as it says itself it should be {}",
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
                "open that graph, or begin in another folder",
            ),
            (
                "parts",
                parts.to_string(),
                manifest.num_parts.to_string(),
                "rows are kept by part: start as many ranks, or begin in another folder",
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
                "start with the same settings, or begin in another folder",
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
                format!("damaged: {have}; the manifest says {want}"),
            ));
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
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    folder.strip_prefix("step-").is_some_and(|n| {
        n.split_once('-').map_or(is_number(n), |(step, again)| is_number(step) && is_number(again))
    })
}

/// Whether a folder holds nothing but files of checkpoints.
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
