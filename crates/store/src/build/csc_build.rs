//! Sorts a stream of edges into a file, in the memory given.

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

/// Most bytes of result between two entries of the journal: as many as the memory of the build, at most these.
const CHECKPOINT: u64 = 256 << 20;
/// The least memory that a build takes.
const LEAST: u64 = 4 << 20;

/// Builds the file of a relation's in-edges from a stream of edges, in the memory given.
///
/// Edges are sorted by destination; inside a row they stand in the order of the stream, so a relation in memory of
/// the same edges has the same rows. The stream is cut into runs that memory holds; a run is sorted by range of
/// destinations and written; then the ranges, each out of all runs, are sorted one after the other into the result.
/// Ids are positions in the stream, and are kept where [`with_edge_ids`](Self::with_edge_ids) asks for them.
///
/// # Disk
/// 6 bytes per edge beside the result (8 where a range has more than 65,536 destinations), and as much as kept ids
/// (4), weights (4) and times (8) take, in a folder `<file>.building`. They are freed while the result grows: at no
/// time more than 8 bytes per edge beyond the result.
///
/// # Kills
/// A build that is killed goes on when it is run again with the same settings and the same stream: runs that are on
/// disk are not read again, ranges that are in the result are not sorted again. The result appears under its name
/// when it is whole.
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
    /// Builds `path`, of edges from `num_src` to `num_dst` nodes, in 1 GiB of memory.
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
    /// Memory of the build in bytes, at least 4 MiB: buffers, without those of the stream.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }
    /// Keeps the place of every edge in the stream, 8 bytes per edge. Where edges are dropped
    /// ([`with_simple`](Self::with_simple), [`with_self_loops`](Self::with_self_loops)), the others keep their ids, and
    /// [`Relation::original_edge_ids`] has them by the numbers of edges in memory.
    #[must_use]
    pub fn with_edge_ids(mut self) -> Self {
        self.ids = true;
        self
    }
    /// Keeps weights, which the stream must have: 4 bytes per edge.
    #[must_use]
    pub fn with_weights(mut self) -> Self {
        self.weights = true;
        self
    }
    /// Keeps times, which the stream must have: 8 bytes per edge.
    #[must_use]
    pub fn with_times(mut self) -> Self {
        self.times = true;
        self
    }
    /// What becomes of self loops.
    #[must_use]
    pub fn with_self_loops(mut self, loops: SelfLoops) -> Self {
        self.loops = loops;
        self
    }
    /// Of parallel edges the first is kept.
    #[must_use]
    pub fn with_simple(mut self) -> Self {
        self.simple = true;
        self
    }
    /// A name for the stream (a file and its date, a seed): a build that was begun with another is not resumed.
    #[must_use]
    pub fn with_stream_name(mut self, name: impl Into<String>) -> Self {
        self.stream = name.into();
        self
    }
    /// Whether to show rate and time left, where standard error is a terminal.
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
        if self.memory < LEAST {
            return Err(StoreError::Memory { what: "a build", least: LEAST, given: self.memory });
        }
        // A bucket has an offset per row in memory, and every bucket a few words per run.
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
        // Two chunks of the stream and one run; three buckets out of runs and one in order, beside the offsets of
        // its rows.
        let budget = self.memory / 4 * 3;
        let run_edges =
            (budget / (2 * columns.chunk_bytes() + columns.bytes()) as u64).clamp(1024, 1 << 31);
        let rows = 24u64 << shift;
        // With less, most of the memory would be offsets, and every bucket be read many times over.
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
        // Places in a bucket have 32 bits.
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

    /// What a build of so many edges will take.
    ///
    /// # Errors
    /// Settings that do not go together.
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
    /// [`StoreError::NodeOutOfRange`] for an endpoint that is no node, [`StoreError::Data`] where the stream names its
    /// file; what the stream reports; [`StoreError::Data`] for a disk that is full; [`StoreError::Resume`] where something else was begun;
    /// [`StoreError::Busy`].
    ///
    /// # Cost
    /// `O(edges)`: every edge is written and read once beside the result. Two threads.
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
            // The result was removed after it had its name.
            std::fs::remove_dir_all(&dir).map_err(io(&dir))?;
            drop(journal);
            return self.run(edges);
        }
        let stats = match whole {
            // Killed between the last byte and the end of the folder.
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
                if since >= self.memory.min(CHECKPOINT) {
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

/// Number of edges in a result whose sections have the lengths `lens`, as a journal says, where they are those of the
/// rows of the first buckets.
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
