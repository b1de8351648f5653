//! Records the finished steps of a build, so that a killed build can be resumed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use burn_gnn_files::internal::open_with;
use burn_gnn_files::{DirLock, create_dirs, lock_dir, sync_dir};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::settings::Settings;
use crate::error::{StoreError, format, io};

/// Statistics of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildStats {
    /// Number of edges in the stream.
    pub read: u64,
    /// Number of edges in the result.
    pub edges: u64,
    /// Bytes of the result.
    pub bytes: u64,
    /// Bytes of the runs, which have been removed.
    pub temporary: u64,
    /// Number of edges that a killed build had already sorted.
    pub resumed: u64,
}

/// One finished step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Entry {
    /// The build started with these settings.
    Began(Settings),
    /// A run was written: `kept` of `read` edges of the stream.
    Run { read: u64, kept: u64 },
    /// All runs are written.
    Sorted,
    /// The result contains the first `buckets` buckets, and its sections have these lengths.
    Merged { buckets: usize, lens: Vec<u64> },
    /// The result is complete, and may already have its final name.
    Finished(BuildStats),
}

/// The locked folder of a build, with its journal, its runs and its unfinished result.
#[derive(Debug)]
pub(super) struct Journal {
    pub(super) dir: PathBuf,
    file: File,
    _lock: DirLock,
}

impl Journal {
    /// Opens or creates a journal and returns its entries. An incomplete last entry is ignored.
    pub(super) fn open(dir: &Path, settings: &Settings) -> Result<(Self, Vec<Entry>), StoreError> {
        create_dirs(dir).map_err(io(dir))?;
        let lock =
            lock_dir(dir).map_err(io(dir))?.ok_or_else(|| StoreError::Busy { path: dir.into() })?;
        let path = dir.join("journal");
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let mut file = open_with(&path, &options)?.0;
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).map_err(io(&path))?;
        let (mut entries, mut whole) = (vec![], 0);
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            match std::str::from_utf8(line).ok().and_then(parse) {
                Some(entry) => entries.push(entry),
                None => break,
            }
            whole += line.len() as u64;
        }
        file.set_len(whole).map_err(io(&path))?;
        let mut journal = Self { dir: dir.into(), file, _lock: lock };
        match entries.first() {
            None => {
                journal.add(&Entry::Began(settings.clone()))?;
                sync_dir(dir).map_err(io(dir))?;
            }
            Some(Entry::Began(begun)) if begun == settings => {}
            Some(begun) => {
                let (expected, found) = (format!("{settings:?}"), format!("{begun:?}"));
                return Err(StoreError::Resume { path: dir.into(), expected, found });
            }
        }
        Ok((journal, entries))
    }

    /// Appends an entry and forces it to disk.
    pub(super) fn add(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let path = self.dir.join("journal");
        let text = serde_json::to_string(entry).map_err(|e| format(&path, e.to_string()))?;
        let line = format!("{:016x} {text}\n", XxHash3_64::oneshot(text.as_bytes()));
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(io(&path))
    }
}

fn parse(line: &str) -> Option<Entry> {
    let (check, text) = line.strip_suffix('\n')?.split_once(' ')?;
    let intact = u64::from_str_radix(check, 16).ok()? == XxHash3_64::oneshot(text.as_bytes());
    if intact { serde_json::from_str(text).ok() } else { None }
}
