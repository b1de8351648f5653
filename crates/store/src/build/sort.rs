//! Divides the stream of edges into sorted runs.

use std::sync::mpsc::sync_channel;

use burn_gnn_files::internal::Progress;

use super::csc_build::CscBuild;
use super::journal::{Entry, Journal};
use super::runs::{Run, RunEdges, Sorted};
use super::settings::Settings;
use super::stream::{EdgeChunk, EdgeStream};
use crate::error::{StoreError, format};

/// Maximal number of edges in a stream, so that their ids and those of added self loops fit into 64 bits.
const LONGEST: u64 = 1 << 62;

impl CscBuild {
    /// Divides the stream into runs. Returns the runs, their starts in the stream, and the number of edges that
    /// existing runs contained.
    pub(super) fn sort(
        &self,
        settings: &Settings,
        edges: &mut impl EdgeStream,
        journal: &mut Journal,
        done: &[Entry],
    ) -> Result<(Vec<Run>, Vec<u64>, u64), StoreError> {
        let (mut runs, mut bases) = (vec![], vec![0u64]);
        for entry in done {
            if let Entry::Run { read, kept } = entry {
                let run = Run::open(&journal.dir, runs.len(), settings)?;
                if run.edges() != *kept {
                    return Err(format(
                        &run.path,
                        format!("expected {kept} edges, found {}", run.edges()),
                    ));
                }
                runs.push(run);
                let before = bases[bases.len() - 1];
                match before.checked_add(*read).filter(|&sum| kept <= read && sum <= LONGEST) {
                    Some(sum) => bases.push(sum),
                    None => {
                        let expected = format!("runs of at most {LONGEST} edges");
                        let found = format!("{kept} edges of {read} after {before}");
                        let path = journal.dir.clone();
                        return Err(StoreError::Resume { path, expected, found });
                    }
                }
            }
        }
        let resumed = bases[bases.len() - 1];
        if done.contains(&Entry::Sorted) {
            return Ok((runs, bases, resumed));
        }
        edges.skip(resumed)?;
        let bar = Progress::steps(self.progress, "sorting", "edges", edges.total());
        let bar = bar.resumed_at(resumed);
        let dir = journal.dir.clone();
        std::thread::scope(|threads| {
            // `None` marks the end of the stream. A channel that is closed before means an error of the stream.
            let (send, receive) = sync_channel::<Option<RunEdges>>(0);
            let (give_back, empty) = sync_channel::<RunEdges>(2);
            let (runs, bases) = (&mut runs, &mut bases);
            let writer = threads.spawn(move || -> Result<(), StoreError> {
                let mut sorted = Sorted::default();
                for run in receive {
                    let Some(mut run) = run else { return journal.add(&Entry::Sorted) };
                    runs.push(sorted.write(&dir, runs.len(), &run, settings)?);
                    journal.add(&Entry::Run { read: run.read, kept: run.edges.len() as u64 })?;
                    bases.push(bases[bases.len() - 1] + run.read);
                    bar.inc(run.read);
                    run.read = 0;
                    run.index.clear();
                    run.edges.clear();
                    // After the last run no thread receives the buffer.
                    let _ = give_back.send(run);
                }
                Ok(())
            });
            let mut read = || {
                let (mut first, mut spare) =
                    (resumed, vec![RunEdges::default(), RunEdges::default()]);
                // If the channel is closed, the writer has failed and returns the error.
                while let Some(mut run) = spare.pop().or_else(|| empty.recv().ok()) {
                    self.fill(settings, edges, &mut run, first)?;
                    first += run.read;
                    let more = run.read > 0;
                    if send.send(more.then_some(run)).is_err() || !more {
                        break;
                    }
                }
                Ok(())
            };
            let read: Result<(), StoreError> = read();
            drop(send);
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written.and(read)
        })?;
        Ok((runs, bases, resumed))
    }

    /// Reads edges until the run is full or the stream ends.
    fn fill(
        &self,
        settings: &Settings,
        edges: &mut impl EdgeStream,
        run: &mut RunEdges,
        first: u64,
    ) -> Result<(), StoreError> {
        let RunEdges { edges: chunk, index, read } = run;
        while *read < settings.run_edges {
            let before = chunk.len();
            let most = (settings.run_edges - *read).min(1 << 16) as usize;
            let n = edges.read(most, chunk)?;
            if n == 0 {
                break;
            }
            self.check(chunk, before, n, first + *read)?;
            if settings.columns.ids {
                index.extend((0..n as u64).map(|i| (*read + i) as u32));
            }
            *read += n as u64;
            if settings.loops.removes() {
                drop_loops(chunk, index, before);
            }
        }
        Ok(())
    }

    /// Validates `n` edges from `before` on: lengths of lists and ranges of endpoints.
    fn check(
        &self,
        chunk: &mut EdgeChunk,
        before: usize,
        n: usize,
        first: u64,
    ) -> Result<(), StoreError> {
        for (arg, ids, bound) in
            [("src", &chunk.src, self.num_src), ("dst", &chunk.dst, self.num_dst)]
        {
            if ids.len() != before + n {
                return Err(StoreError::source(format!(
                    "`{arg}`: expected {n} edges from the stream, found {}",
                    ids.len() - before
                )));
            }
            let most = ids[before..].iter().copied().max().unwrap_or_default();
            if u64::from(most) >= bound {
                let at =
                    ids[before..].iter().position(|&v| u64::from(v) >= bound).unwrap_or_default();
                return Err(StoreError::NodeOutOfRange {
                    edge: first + at as u64,
                    arg,
                    bound,
                    value: u64::from(ids[before + at]),
                });
            }
        }
        for (what, wanted, found) in [
            ("weights", self.weights, chunk.weights.len()),
            ("times", self.times, chunk.times.len()),
        ] {
            if wanted && found != before + n {
                return Err(StoreError::source(format!(
                    "`{what}`: expected one per edge, found {found} for {} edges",
                    before + n
                )));
            }
        }
        if !self.weights {
            chunk.weights.clear();
        }
        if !self.times {
            chunk.times.clear();
        }
        Ok(())
    }
}

/// Removes self loops among the edges from `before` on.
fn drop_loops(chunk: &mut EdgeChunk, index: &mut Vec<u32>, before: usize) {
    let mut to = before;
    for i in before..chunk.len() {
        if chunk.src[i] != chunk.dst[i] {
            chunk.shift(i, to);
            if !index.is_empty() {
                index[to] = index[i];
            }
            to += 1;
        }
    }
    chunk.truncate(to);
    index.truncate(to);
}
