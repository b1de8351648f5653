//! Merges the edges of a bucket from all runs, ordered by destination.

use super::runs::Run;
use super::settings::{Columns, SelfLoops, Settings};
use crate::error::StoreError;
use crate::section_writer::SectionWriter;

/// Edges per read of a bucket that does not fit into memory.
const PART: usize = 1 << 16;

/// Columns of some edges of a run.
struct View<'a> {
    columns: Columns,
    count: usize,
    bytes: &'a [u8],
}

impl View<'_> {
    fn column(&self, number: usize) -> &[u8] {
        let before: usize = self.columns.widths().take(number).sum();
        let width = self.columns.widths().nth(number).unwrap_or_default();
        &self.bytes[before * self.count..][..width * self.count]
    }
    fn src(&self) -> impl Iterator<Item = u32> + '_ {
        self.column(0).as_chunks().0.iter().map(|b| u32::from_le_bytes(*b))
    }
    /// Calls `f` with the position of each edge and its destination relative to the bucket.
    #[inline(always)]
    fn each_low(&self, mut f: impl FnMut(usize, usize)) {
        let bytes = self.column(1);
        if self.columns.narrow {
            bytes
                .as_chunks()
                .0
                .iter()
                .enumerate()
                .for_each(|(i, b)| f(i, usize::from(u16::from_le_bytes(*b))));
        } else {
            bytes
                .as_chunks()
                .0
                .iter()
                .enumerate()
                .for_each(|(i, b)| f(i, u32::from_le_bytes(*b) as usize));
        }
    }
    fn at<const N: usize>(&self, column: usize, i: usize) -> [u8; N] {
        let mut number = [0; N];
        number.copy_from_slice(&self.column(column)[N * i..][..N]);
        number
    }
}

/// Edges in the order of the result.
#[derive(Debug, Default)]
struct Placed {
    src: Vec<u32>,
    ids: Vec<u64>,
    weights: Vec<f32>,
    times: Vec<i64>,
}

impl Placed {
    fn resize(&mut self, columns: Columns, n: usize) {
        self.src.resize(n, 0);
        self.ids.resize(if columns.ids { n } else { 0 }, 0);
        self.weights.resize(if columns.weights { n } else { 0 }, 0.0);
        self.times.resize(if columns.times { n } else { 0 }, 0);
    }
    /// Moves edge `from` to position `to`.
    fn shift(&mut self, columns: Columns, from: usize, to: usize) {
        self.src[to] = self.src[from];
        if columns.ids {
            self.ids[to] = self.ids[from];
        }
        if columns.weights {
            self.weights[to] = self.weights[from];
        }
        if columns.times {
            self.times[to] = self.times[from];
        }
    }
}

/// Appends buckets to the result in ascending order.
pub(super) struct Merger<'a> {
    settings: &'a Settings,
    runs: &'a [Run],
    /// Position of the first edge of each run in the stream, then the length of the stream.
    bases: &'a [u64],
    pub(super) out: SectionWriter,
    /// Number of written edges.
    pub(super) edges: u64,
    placed: Placed,
    /// Position of the next edge of each row of the bucket.
    next: Vec<u64>,
    order: Vec<(u32, u32)>,
}

impl<'a> Merger<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        runs: &'a [Run],
        bases: &'a [u64],
        out: SectionWriter,
        edges: u64,
    ) -> Self {
        Self {
            settings,
            runs,
            bases,
            out,
            edges,
            placed: Placed::default(),
            next: vec![],
            order: vec![],
        }
    }

    fn rows(&self, bucket: usize) -> usize {
        let first = (bucket as u64) << self.settings.shift;
        (self.settings.num_dst - first).min(1 << self.settings.shift) as usize
    }

    /// Merges a bucket whose columns of all runs are in memory.
    pub(super) fn whole(&mut self, bucket: usize, parts: &[Vec<u8>]) -> Result<(), StoreError> {
        let (columns, rows) = (self.settings.columns, self.rows(bucket));
        let view = |bytes| View { columns, count: <[u8]>::len(bytes) / columns.bytes(), bytes };
        self.next.clear();
        self.next.resize(rows + 1, 0);
        for bytes in parts {
            view(bytes).each_low(|_, low| self.next[low + 1] += 1);
        }
        let total = prefix(&mut self.next);
        let starts = self.next.clone();
        self.placed.resize(columns, total as usize);
        for (run, bytes) in parts.iter().enumerate() {
            self.scatter(run, &view(bytes), 0..rows, 0);
        }
        self.put(bucket, 0, &starts)
    }

    /// Merges a bucket that exceeds memory: one pass over the bucket for each group of rows that fits.
    pub(super) fn large(&mut self, bucket: usize, most: u64) -> Result<(), StoreError> {
        self.runs.iter().try_for_each(|run| run.check(bucket))?;
        let rows = self.rows(bucket);
        let mut counts = vec![0u64; rows + 1];
        self.parts(bucket, |_, _, view| {
            view.each_low(|_, low| counts[low + 1] += 1);
            Ok(())
        })?;
        self.check_lengths(bucket, &counts[1..])?;
        let mut from = 0;
        while from < rows {
            let (mut to, mut sum) = (from + 1, counts[from + 1]);
            while to < rows && sum + counts[to + 1] <= most {
                sum += counts[to + 1];
                to += 1;
            }
            if sum > most {
                self.long_row(bucket, from, sum, most)?;
            } else {
                self.next = vec![0; to - from + 1];
                self.next[1..].copy_from_slice(&counts[from + 1..=to]);
                prefix(&mut self.next);
                let starts = self.next.clone();
                self.placed.resize(self.settings.columns, sum as usize);
                self.parts(bucket, |merger, run, view| {
                    merger.scatter(run, view, from..to, from);
                    Ok(())
                })?;
                self.put(bucket, from, &starts)?;
            }
            from = to;
        }
        Ok(())
    }

    /// Returns an error for a row with more edges than `u32` can count.
    fn check_lengths(&self, bucket: usize, counts: &[u64]) -> Result<(), StoreError> {
        let Some(row) = counts.iter().position(|&n| n > u64::from(u32::MAX)) else { return Ok(()) };
        let (v, n, most) =
            (((bucket as u64) << self.settings.shift) + row as u64, counts[row], u32::MAX);
        Err(StoreError::source(format!(
            "node {v}: expected at most {most} in-edges, found {n}; split the relation"
        )))
    }

    /// Appends a single row that exceeds memory. Its edges are already in order.
    fn long_row(
        &mut self,
        bucket: usize,
        row: usize,
        mut len: u64,
        most: u64,
    ) -> Result<(), StoreError> {
        let columns = self.settings.columns;
        let mut seen = if self.settings.simple {
            vec![0u64; self.settings.num_src.div_ceil(64) as usize]
        } else {
            vec![]
        };
        let v = (((bucket as u64) << self.settings.shift) + row as u64) as u32;
        self.out.put(0, &self.edges.to_le_bytes())?;
        self.placed.resize(columns, 0);
        self.parts(bucket, |merger, run, view| {
            let mut here = vec![];
            view.each_low(|i, low| here.extend((low == row).then_some(i)));
            let src: Vec<u32> = view.src().collect();
            for i in here {
                if let Some(word) = seen.get_mut(src[i] as usize / 64) {
                    if *word >> (src[i] % 64) & 1 == 1 {
                        len -= 1;
                        continue;
                    }
                    *word |= 1 << (src[i] % 64);
                }
                let at = merger.placed.src.len();
                merger.placed.resize(columns, at + 1);
                merger.set(at, src[i], run, view, i);
            }
            if merger.placed.src.len() as u64 >= most.max(1) {
                merger.flush()?;
            }
            Ok(())
        })?;
        self.flush()?;
        self.edges += len;
        if self.settings.loops.adds() {
            self.add_loop(v);
            self.flush()?;
            self.edges += 1;
        }
        Ok(())
    }

    /// Calls `f` with successive chunks of a bucket from all runs.
    fn parts(
        &mut self,
        bucket: usize,
        mut f: impl FnMut(&mut Self, usize, &View<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut bytes = vec![];
        for (r, run) in self.runs.iter().enumerate() {
            let all = run.edges_of(bucket);
            for from in (0..all).step_by(PART) {
                let count = (all - from).min(PART as u64) as usize;
                run.read_some(bucket, from, count, &mut bytes)?;
                f(self, r, &View { columns: self.settings.columns, count, bytes: &bytes })?;
            }
        }
        Ok(())
    }

    /// Moves the edges of `rows` to their positions. Row `first` is the first entry of [`next`](Self::next).
    fn scatter(&mut self, run: usize, view: &View<'_>, rows: std::ops::Range<usize>, first: usize) {
        if self.settings.columns.is_plain() {
            // The inner loop of a build.
            let (src, next, placed) =
                (view.column(0).as_chunks::<4>().0, &mut self.next, &mut self.placed.src);
            view.each_low(|i, low| {
                if rows.contains(&low) {
                    let at = &mut next[low - first];
                    placed[*at as usize] = u32::from_le_bytes(src[i]);
                    *at += 1;
                }
            });
            return;
        }
        let src: Vec<u32> = view.src().collect();
        let mut targets = vec![];
        view.each_low(|i, low| {
            if rows.contains(&low) {
                targets.push((i, self.next[low - first]));
                self.next[low - first] += 1;
            }
        });
        for (i, at) in targets {
            self.set(at as usize, src[i], run, view, i);
        }
    }

    /// Copies edge `i` of a view to position `at`.
    fn set(&mut self, at: usize, src: u32, run: usize, view: &View<'_>, i: usize) {
        let columns = self.settings.columns;
        self.placed.src[at] = src;
        let mut column = 2;
        if columns.ids {
            self.placed.ids[at] =
                self.bases[run] + u64::from(u32::from_le_bytes(view.at(column, i)));
            column += 1;
        }
        if columns.weights {
            self.placed.weights[at] = f32::from_le_bytes(view.at(column, i));
            column += 1;
        }
        if columns.times {
            self.placed.times[at] = i64::from_le_bytes(view.at(column, i));
        }
    }

    /// Writes sorted rows, from row `first` of the bucket on, which start at `starts`.
    fn put(&mut self, bucket: usize, first: usize, starts: &[u64]) -> Result<(), StoreError> {
        let mut indptr = Vec::with_capacity(starts.len() - 1);
        if !self.settings.simple && !self.settings.loops.adds() {
            indptr.extend(starts[..starts.len() - 1].iter().map(|s| self.edges + s));
            self.out.put(0, bytemuck::cast_slice(&indptr))?;
            self.flush()?;
            self.edges += starts[starts.len() - 1];
            return Ok(());
        }
        let node = ((bucket as u64) << self.settings.shift) + first as u64;
        for (row, w) in starts.windows(2).enumerate() {
            indptr.push(self.edges);
            let mut range = w[0] as usize..w[1] as usize;
            if self.settings.simple {
                range = self.first_of_each(range);
            }
            self.edges += range.len() as u64;
            self.write(range)?;
            if self.settings.loops.adds() {
                let at = self.placed.src.len();
                self.add_loop((node + row as u64) as u32);
                self.write(at..at + 1)?;
                self.placed.resize(self.settings.columns, at);
                self.edges += 1;
            }
        }
        self.out.put(0, bytemuck::cast_slice(&indptr))
    }

    /// Removes parallel edges of a row: the first edge of every source is kept, in order.
    fn first_of_each(&mut self, range: std::ops::Range<usize>) -> std::ops::Range<usize> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(range.clone().map(|i| (self.placed.src[i], i as u32)));
        order.sort_unstable();
        order.dedup_by_key(|e| e.0);
        order.sort_unstable_by_key(|e| e.1);
        for (to, &(_, from)) in order.iter().enumerate() {
            self.placed.shift(self.settings.columns, from as usize, range.start + to);
        }
        let kept = range.start..range.start + order.len();
        self.order = order;
        kept
    }

    fn add_loop(&mut self, v: u32) {
        let at = self.placed.src.len();
        self.placed.resize(self.settings.columns, at + 1);
        self.placed.src[at] = v;
        let stream = self.bases.last().copied().unwrap_or_default();
        self.placed.ids.iter_mut().skip(at).for_each(|id| *id = stream + u64::from(v));
        self.placed.weights.iter_mut().skip(at).for_each(|w| *w = 1.0);
        self.placed.times.iter_mut().skip(at).for_each(|t| *t = i64::MIN);
    }

    /// Appends a range of the sorted edges to the result.
    fn write(&mut self, range: std::ops::Range<usize>) -> Result<(), StoreError> {
        let (columns, placed) = (self.settings.columns, &self.placed);
        self.out.put(1, bytemuck::cast_slice(&placed.src[range.clone()]))?;
        let mut section = 2;
        if columns.ids {
            self.out.put(section, bytemuck::cast_slice(&placed.ids[range.clone()]))?;
            section += 1;
        }
        if columns.weights {
            self.out.put(section, bytemuck::cast_slice(&placed.weights[range.clone()]))?;
            section += 1;
        }
        if columns.times {
            self.out.put(section, bytemuck::cast_slice(&placed.times[range]))?;
        }
        Ok(())
    }

    /// Appends all sorted edges to the result.
    fn flush(&mut self) -> Result<(), StoreError> {
        self.write(0..self.placed.src.len())?;
        self.placed.resize(self.settings.columns, 0);
        Ok(())
    }
}

impl SelfLoops {
    pub(super) fn adds(self) -> bool {
        matches!(self, Self::Add | Self::Replace)
    }
    pub(super) fn removes(self) -> bool {
        matches!(self, Self::Remove | Self::Replace)
    }
}

/// Replaces counts by their exclusive prefix sums in place, and returns the total.
fn prefix(counts: &mut [u64]) -> u64 {
    let mut sum = 0;
    for c in counts {
        sum += *c;
        *c = sum;
    }
    sum
}
