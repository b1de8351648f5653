//! External sort: builds a CSC file from a stream of edges in bounded memory.
//!
//! The input is larger than memory, so it cannot be sorted at once. The build cuts the stream into *runs* that fit into
//! memory, sorts each run by ranges of destinations (*buckets*) and writes it to disk. Then it reads one bucket at a
//! time from all runs, orders its edges by destination in memory, and appends them to the result. Every edge is written
//! and read once in addition to the result.
//!
//! ```text
//! sort:   for each run (a chunk of the stream that fits into memory):
//!             drop edges that the settings exclude
//!             counting sort by bucket, bucket(edge) = edge.dst >> shift         // stable
//!             write the columns of each bucket, a table of buckets, checksums; journal "run"
//! merge:  for each bucket in ascending order:
//!             read the bucket from every run                                   // a second thread reads ahead
//!             count the edges of each destination; prefix sums give the offsets
//!             for each run in order, for each edge: row[dst][next[dst]++] = edge // stable, so rows keep stream order
//!             append offsets and columns to the result
//!             every 256 MiB: sync, journal "merged", free the disk of merged buckets
//! ```
//!
//! Why it is written this way:
//!
//! 1. *Two counting sorts instead of one comparison sort*: both passes are linear, and the first writes sequentially.
//! 2. *At most 8,192 buckets*: a bucket is small enough for its random writes to stay in memory, and there are few
//!    enough buckets for large sequential reads.
//! 3. *Destinations inside a bucket are stored in 2 bytes* if a bucket has at most 65,536 of them, instead of 4.
//! 4. *Both sorts are stable*, so a row has its edges in the order of the stream, as in memory.
//! 5. *A bucket that exceeds memory is merged in several passes*, each for a group of rows, so skewed degrees do not
//!    increase memory.
//! 6. *Reading and merging overlap* on two threads.
//! 7. *A journal records finished steps*, so a killed build resumes, and runs are freed while the result grows.

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use burn_gnn_files::internal::Progress;
use burn_gnn_files::sync_dir;
use burn_gnn_structure::Relation;

use super::estimate::BuildPlan;
use super::journal::{BuildStats, Entry, Journal};
use super::merge::Merger;
use super::runs::Run;
use super::settings::{Columns, SelfLoops, Settings};
use super::stream::EdgeStream;
use crate::csc::{EDGE_ID_BOUND, EDGE_IDS, INDPTR, KIND, SOURCES, TIMES, WEIGHTS};
use crate::error::{StoreError, format, io};
use crate::section_writer::SectionWriter;
use crate::sections::Header;

/// Maximal number of bytes of the result between two entries of the journal. Builds with less memory write an entry
/// after as many bytes as they have memory.
const JOURNAL_INTERVAL: u64 = 256 << 20;
/// Minimal memory of a build.
const MIN_MEMORY: u64 = 4 << 20;

/// Builds the CSC file of a relation from a stream of edges, in bounded memory (external sort).
///
/// Edges are sorted by destination. Inside a row they are in the order of the stream, so a relation of the same edges
/// in memory has the same rows. Edge ids are positions in the stream; they are stored with
/// [`with_edge_ids`](Self::with_edge_ids).
///
/// # Disk
/// 6 bytes per edge in addition to the result (8 if a bucket has more than 65,536 destinations), and the bytes of
/// stored ids (4), weights (4) and times (8), in a folder `<file>.building`. They are freed while the result grows: the
/// peak is at most 8 bytes per edge above the size of the result.
///
/// # Resuming
/// A killed build resumes when it is run again with the same settings and the same stream. It skips finished runs and
/// finished ranges of destinations. The result appears under its final name when it is complete.
///
/// ```
/// use burn_gnn_store::{CscBuild, EdgeIter, StoredCsc};
/// # let dir = tempfile::tempdir().unwrap();
/// let file = dir.path().join("graph.csc");
/// let edges = (0..1000u32).map(|i| (i % 10, i * 7 % 10));
/// let stats = CscBuild::new(&file, 10, 10).with_memory(8 << 20).with_edge_ids().run(EdgeIter::new(edges))?;
/// assert_eq!((stats.edges, stats.resumed), (1000, 0));
/// StoredCsc::open(&file)?.verify()?;
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CscBuild {
    pub(super) path: PathBuf,
    pub(super) num_src: u64,
    pub(super) num_dst: u64,
    pub(super) memory: u64,
    pub(super) ids: bool,
    pub(super) weights: bool,
    pub(super) times: bool,
    pub(super) loops: SelfLoops,
    pub(super) simple: bool,
    pub(super) stream: String,
    pub(super) progress: bool,
}

impl CscBuild {
    /// A build of the file `path`, with `num_src` sources and `num_dst` destinations, in 1 GiB of memory.
    pub fn new(path: impl AsRef<Path>, num_src: usize, num_dst: usize) -> Self {
        Self {
            path: path.as_ref().into(),
            num_src: num_src as u64,
            num_dst: num_dst as u64,
            memory: 1 << 30,
            ids: false,
            weights: false,
            times: false,
            loops: SelfLoops::Keep,
            simple: false,
            stream: String::new(),
            progress: false,
        }
    }
    /// Sets the memory of the build in bytes, at least 4 MiB. The stream's own buffers are not included.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }
    /// Stores the position of every edge in the stream, 8 bytes per edge. If edges are dropped
    /// ([`with_simple`](Self::with_simple), [`with_self_loops`](Self::with_self_loops)), the remaining edges keep their
    /// ids, which [`Relation::original_edge_ids`] returns after the file is read into memory.
    #[must_use]
    pub fn with_edge_ids(mut self) -> Self {
        self.ids = true;
        self
    }
    /// Stores weights, which the stream must have: 4 bytes per edge.
    #[must_use]
    pub fn with_weights(mut self) -> Self {
        self.weights = true;
        self
    }
    /// Stores times, which the stream must have: 8 bytes per edge.
    #[must_use]
    pub fn with_times(mut self) -> Self {
        self.times = true;
        self
    }
    /// Sets the treatment of self loops.
    #[must_use]
    pub fn with_self_loops(mut self, loops: SelfLoops) -> Self {
        self.loops = loops;
        self
    }
    /// Removes parallel edges; the first one is kept.
    #[must_use]
    pub fn with_simple(mut self) -> Self {
        self.simple = true;
        self
    }
    /// Sets a name of the stream, such as a file with its date, or a seed. A build with another name is not resumed.
    #[must_use]
    pub fn with_stream_name(mut self, name: impl Into<String>) -> Self {
        self.stream = name.into();
        self
    }
    /// Sets whether a progress bar is shown if standard error is a terminal.
    #[must_use]
    pub fn with_progress(mut self, progress: bool) -> Self {
        self.progress = progress;
        self
    }

    fn settings(&self) -> Result<Settings, StoreError> {
        let limit = Relation::LIMIT;
        for (what, n) in [("num_src", self.num_src), ("num_dst", self.num_dst)] {
            if n > limit {
                return Err(format(
                    &self.path,
                    format!("`{what}`: expected at most {limit}, found {n}"),
                ));
            }
        }
        if self.loops.adds() && self.num_src != self.num_dst {
            let expected = "`SelfLoops::Keep` for a relation between two node types";
            return Err(burn_gnn_structure::internal::setting(
                "self_loops",
                expected,
                &format!("{:?}", self.loops),
            )
            .into());
        }
        if self.memory < MIN_MEMORY {
            return Err(StoreError::Memory {
                what: "a build",
                least: MIN_MEMORY,
                given: self.memory,
            });
        }
        // Memory holds an offset for each row of a bucket, and a few words for each bucket and run.
        let most_buckets = (self.memory >> 15).clamp(64, 1 << 13);
        let mut shift = 8;
        while self.num_dst.div_ceil(1 << shift) > most_buckets {
            shift += 1;
        }
        let columns = Columns {
            narrow: shift <= 16,
            ids: self.ids,
            weights: self.weights,
            times: self.times,
        };
        // Sorting holds two chunks of the stream and one run. Merging holds three buckets from runs, one sorted bucket,
        // and the offsets of its rows.
        let budget = self.memory / 4 * 3;
        let run_edges =
            (budget / (2 * columns.chunk_bytes() + columns.bytes()) as u64).clamp(1024, 1 << 31);
        let rows = 24u64 << shift;
        // With less memory, offsets would take most of it, and every bucket would be read many times.
        if rows > budget / 2 {
            let mut least = self.memory;
            while 24u64 << shift > least / 4 * 3 / 2 {
                least *= 2;
            }
            return Err(StoreError::Memory {
                what: "a build of as many nodes",
                least,
                given: self.memory,
            });
        }
        // Positions in a bucket are 32-bit.
        let bucket_edges = ((budget - rows)
            / (3 * columns.bytes() + columns.result_bytes()) as u64)
            .clamp(1024, u64::from(u32::MAX));
        let (num_src, num_dst, loops, simple, stream) =
            (self.num_src, self.num_dst, self.loops, self.simple, self.stream.clone());
        Ok(Settings {
            num_src,
            num_dst,
            shift,
            columns,
            loops,
            simple,
            run_edges,
            bucket_edges,
            stream,
        })
    }

    /// Estimates the memory, disk space and time of a build with this number of edges.
    ///
    /// # Errors
    /// Settings that contradict each other.
    pub fn plan(&self, edges: u64) -> Result<BuildPlan, StoreError> {
        let settings = self.settings()?;
        let loops = if settings.loops.adds() { self.num_dst } else { 0 };
        Ok(BuildPlan::new(
            edges,
            edges + loops,
            self.num_dst,
            settings.columns.bytes(),
            settings.columns.result_bytes(),
            self.memory,
        ))
    }

    /// Reads the stream and writes the file.
    ///
    /// # Errors
    /// [`StoreError::NodeOutOfRange`] for an endpoint out of range, or [`StoreError::Data`] if the stream names the
    /// file; errors of the stream; [`StoreError::Data`] for a full disk; [`StoreError::Resume`] if the folder contains
    /// another build; [`StoreError::Busy`].
    ///
    /// # Cost
    /// `O(edges)`: every edge is written and read once in addition to the result. Two threads.
    pub fn run(&self, mut edges: impl EdgeStream) -> Result<BuildStats, StoreError> {
        let settings = self.settings()?;
        let mut name = self
            .path
            .file_name()
            .ok_or_else(|| format(&self.path, "expected the name of a file"))?
            .to_owned();
        name.push(".building");
        let dir = self.path.with_file_name(name);
        let (mut journal, done) = Journal::open(&dir, &settings)?;
        let made = dir.join(KIND);
        let whole = done
            .iter()
            .find_map(|e| if let Entry::Finished(stats) = e { Some(*stats) } else { None });
        if whole.is_some() && !made.exists() && !self.path.exists() {
            // The result was removed after it got its final name.
            std::fs::remove_dir_all(&dir).map_err(io(&dir))?;
            drop(journal);
            return self.run(edges);
        }
        let stats = match whole {
            // The build was killed after the result was complete, before the folder was removed.
            Some(stats) => BuildStats { resumed: stats.read, ..stats },
            None => {
                let sorted = self.sort(&settings, &mut edges, &mut journal, &done);
                let (runs, bases, resumed) = sorted.map_err(|e| match e {
                    StoreError::NodeOutOfRange { arg, .. } => {
                        let path = edges.path(usize::from(arg == "dst"));
                        path.map(|path| format(path, e.to_string())).unwrap_or(e)
                    }
                    e => e,
                })?;
                let stats = self.merge(&settings, &runs, &bases, &mut journal, &done)?;
                journal.add(&Entry::Finished(stats))?;
                BuildStats { resumed, ..stats }
            }
        };
        if whole.is_none() || made.exists() {
            std::fs::rename(&made, &self.path).map_err(io(&self.path))?;
        }
        sync_dir(
            self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        )
        .map_err(io(&self.path))?;
        drop(journal);
        std::fs::remove_dir_all(&dir).map_err(io(&dir))?;
        Ok(stats)
    }

    fn header(&self, settings: &Settings, most: u64) -> Header {
        let mut header =
            Header::new(KIND).with("num_src", self.num_src).with("num_dst", self.num_dst);
        header.section(INDPTR, 8 * (self.num_dst + 1));
        header.section(SOURCES, 4 * most);
        let columns = settings.columns;
        for (name, wanted, each) in
            [(EDGE_IDS, columns.ids, 8), (WEIGHTS, columns.weights, 4), (TIMES, columns.times, 8)]
        {
            if wanted {
                header.section(name, each * most);
            }
        }
        header
    }

    fn merge(
        &self,
        settings: &Settings,
        runs: &[Run],
        bases: &[u64],
        journal: &mut Journal,
        done: &[Entry],
    ) -> Result<BuildStats, StoreError> {
        let kept: u64 = runs.iter().map(Run::edges).sum();
        let loops = if settings.loops.adds() { self.num_dst } else { 0 };
        let header = self.header(settings, kept + loops);
        let path = journal.dir.join(KIND);
        let last = done.iter().rev().find_map(|e| {
            if let Entry::Merged { buckets, lens } = e { Some((*buckets, lens)) } else { None }
        });
        let (first, out, edges) = match last {
            Some((buckets, lens)) => {
                let edges = merged(settings, kept + loops, buckets, lens, &journal.dir)?;
                (buckets, SectionWriter::resume(&path, header, lens)?, edges)
            }
            None => (0, SectionWriter::create(&path, header)?, 0),
        };
        let bar = Progress::steps(self.progress, "merging", "edges", kept);
        let bar = bar.resumed_at(edges.min(kept));
        let mut merger = Merger::new(settings, runs, bases, out, edges);
        std::thread::scope(|threads| {
            let (send, receive) = sync_channel::<Result<Option<Vec<Vec<u8>>>, StoreError>>(1);
            threads.spawn(move || {
                for bucket in first..settings.buckets() {
                    let count: u64 = runs.iter().map(|r| r.edges_of(bucket)).sum();
                    let parts = if count > settings.bucket_edges {
                        Ok(None)
                    } else {
                        runs.iter().map(|r| r.read(bucket)).collect::<Result<Vec<_>, _>>().map(Some)
                    };
                    if send.send(parts).is_err() {
                        return;
                    }
                }
            });
            let mut since = 0;
            for (bucket, parts) in (first..).zip(receive) {
                let before = merger.edges;
                match parts? {
                    Some(parts) => merger.whole(bucket, &parts)?,
                    None => merger.large(bucket, settings.bucket_edges)?,
                }
                bar.inc(runs.iter().map(|r| r.edges_of(bucket)).sum());
                since += (merger.edges - before) * settings.columns.result_bytes() as u64;
                if since >= self.memory.min(JOURNAL_INTERVAL) {
                    since = 0;
                    let lens = merger.out.sync()?;
                    journal.add(&Entry::Merged { buckets: bucket + 1, lens })?;
                    runs.iter().for_each(|r| r.free_before(bucket + 1));
                }
            }
            Ok::<(), StoreError>(())
        })?;
        let edges = merger.edges;
        merger.out.put(0, &edges.to_le_bytes())?;
        let read = bases[bases.len() - 1];
        let mut facts = vec![("num_edges", edges.into())];
        if settings.columns.ids {
            facts.push((EDGE_ID_BOUND, (read + loops).into()));
        }
        let bytes = merger.out.finish(&facts)?;
        let temporary = kept * settings.columns.bytes() as u64;
        Ok(BuildStats { read, edges, bytes, temporary, resumed: 0 })
    }
}

/// Number of edges in an unfinished result whose sections have the lengths `lens` of a journal entry. Returns an error
/// if the lengths do not match the first `buckets` buckets.
fn merged(
    settings: &Settings,
    most: u64,
    buckets: usize,
    lens: &[u64],
    dir: &Path,
) -> Result<u64, StoreError> {
    let edges = lens.get(1).map_or(0, |len| len / 4);
    let rows = (buckets.min(settings.buckets()) as u64) << settings.shift;
    let widths = settings.columns.result_widths().map(|width| width * edges.min(most));
    let expected: Vec<u64> = [8 * rows.min(settings.num_dst)].into_iter().chain(widths).collect();
    if buckets > settings.buckets() || lens != expected {
        let expected = format!("sections of {expected:?} bytes after {buckets} buckets");
        return Err(StoreError::Resume { path: dir.into(), expected, found: format!("{lens:?}") });
    }
    Ok(edges)
}
