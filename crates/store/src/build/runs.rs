//! Sorts edges into runs on disk, bucketed by ranges of destinations.

use std::fs::File;
use std::hash::Hasher;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::settings::{Columns, Settings};
use super::stream::EdgeChunk;
use crate::error::{StoreError, io};
use crate::section_writer::{create, read_at, reopen};
use crate::sections::BLOCK;

/// Edges of a run, in the order of the stream.
#[derive(Debug, Default)]
pub(super) struct RunEdges {
    pub(super) edges: EdgeChunk,
    /// Position of each edge among those that were read for this run.
    pub(super) index: Vec<u32>,
    /// Number of edges that were read for this run.
    pub(super) read: u64,
}

/// Number of runs whose files stay open. All other files are opened for each read, since a process may have about a
/// thousand open files.
const OPEN: usize = 256;
/// Bytes per call of the hash function.
const PIECE: u64 = 1 << 20;

/// A run on disk: the buckets in order, each with its columns in order, then the starts and checksums of the buckets,
/// and a checksum of this table.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) path: PathBuf,
    file: Option<File>,
    /// Start of each bucket in edges, then the total.
    starts: Vec<u64>,
    checks: Vec<u64>,
    columns: Columns,
}

pub(super) fn run_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("run-{number:05}"))
}

/// Reorders values by bucket. The sort is stable.
fn scatter<T: Copy + Default>(
    dst: &[u32],
    shift: u32,
    starts: &[u32],
    values: impl Iterator<Item = T>,
    out: &mut Vec<T>,
) {
    let mut next = starts.to_vec();
    out.clear();
    out.resize(dst.len(), T::default());
    for (&v, value) in dst.iter().zip(values) {
        let at = &mut next[(v >> shift) as usize];
        out[*at as usize] = value;
        *at += 1;
    }
}

/// Buffers of a sort, which the next sort reuses.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    src: Vec<u32>,
    low: Vec<u32>,
    narrow: Vec<u16>,
    index: Vec<u32>,
    weights: Vec<f32>,
    times: Vec<i64>,
}

impl Sorted {
    /// Writes a run and forces it to disk.
    pub(super) fn write(
        &mut self,
        dir: &Path,
        number: usize,
        of: &RunEdges,
        settings: &Settings,
    ) -> Result<Run, StoreError> {
        let (columns, shift, dst) = (settings.columns, settings.shift, &of.edges.dst[..]);
        let buckets = settings.buckets();
        let mut starts = vec![0u32; buckets + 1];
        dst.iter().for_each(|&v| starts[(v >> shift) as usize + 1] += 1);
        for b in 0..buckets {
            starts[b + 1] += starts[b];
        }
        let mask = ((1u64 << shift) - 1) as u32;
        scatter(dst, shift, &starts, of.edges.src.iter().copied(), &mut self.src);
        if columns.narrow {
            scatter(dst, shift, &starts, dst.iter().map(|&v| (v & mask) as u16), &mut self.narrow);
        } else {
            scatter(dst, shift, &starts, dst.iter().map(|&v| v & mask), &mut self.low);
        }
        if columns.ids {
            scatter(dst, shift, &starts, of.index.iter().copied(), &mut self.index);
        }
        if columns.weights {
            scatter(dst, shift, &starts, of.edges.weights.iter().copied(), &mut self.weights);
        }
        if columns.times {
            scatter(dst, shift, &starts, of.edges.times.iter().copied(), &mut self.times);
        }
        let path = run_path(dir, number);
        let file = create(&path)?;
        let mut out = BufWriter::with_capacity(16 * BLOCK, file);
        let mut checks = Vec::with_capacity(buckets);
        for b in 0..buckets {
            let range = starts[b] as usize..starts[b + 1] as usize;
            let mut hash = XxHash3_64::new();
            let mut put = |bytes: &[u8]| {
                hash.write(bytes);
                out.write_all(bytes)
            };
            let written = put(bytemuck::cast_slice(&self.src[range.clone()]))
                .and_then(|()| match columns.narrow {
                    true => put(bytemuck::cast_slice(&self.narrow[range.clone()])),
                    false => put(bytemuck::cast_slice(&self.low[range.clone()])),
                })
                .and_then(|()| {
                    if columns.ids {
                        put(bytemuck::cast_slice(&self.index[range.clone()]))
                    } else {
                        Ok(())
                    }
                })
                .and_then(|()| {
                    if columns.weights {
                        put(bytemuck::cast_slice(&self.weights[range.clone()]))
                    } else {
                        Ok(())
                    }
                })
                .and_then(|()| {
                    if columns.times {
                        put(bytemuck::cast_slice(&self.times[range.clone()]))
                    } else {
                        Ok(())
                    }
                });
            written.map_err(io(&path))?;
            checks.push(hash.finish());
        }
        let starts: Vec<u64> = starts.into_iter().map(u64::from).collect();
        let mut tail: Vec<u64> = [&starts[..], &checks].concat();
        tail.push(XxHash3_64::oneshot(bytemuck::cast_slice(&tail)));
        let tail = out.write_all(bytemuck::cast_slice(&tail));
        let file = tail
            .and_then(|()| out.into_inner().map_err(std::io::IntoInnerError::into_error))
            .map_err(io(&path))?;
        file.sync_data().map_err(io(&path))?;
        Ok(Run { path, file: (number < OPEN).then_some(file), starts, checks, columns })
    }
}

impl Run {
    /// Opens an existing run.
    pub(super) fn open(dir: &Path, number: usize, settings: &Settings) -> Result<Self, StoreError> {
        let path = run_path(dir, number);
        let file = reopen(&path)?;
        let found = file.metadata().map_err(io(&path))?.len();
        let buckets = settings.buckets();
        let mut starts = vec![0u64; 2 * buckets + 2];
        let tail = 8 * starts.len() as u64;
        let short = |expected| StoreError::Truncated { path: path.clone(), expected, found };
        let at = found.checked_sub(tail).ok_or_else(|| short(tail))?;
        read_at(&file, bytemuck::cast_slice_mut(&mut starts), at).map_err(io(&path))?;
        let expected = starts.pop().unwrap_or_default();
        let found_sum = XxHash3_64::oneshot(bytemuck::cast_slice(&starts));
        if expected != found_sum {
            return Err(StoreError::Damaged {
                path,
                section: "buckets".into(),
                block: 0,
                expected,
                found: found_sum,
            });
        }
        let checks = starts.split_off(buckets + 1);
        let edges = starts[buckets];
        if !starts.is_sorted() || edges.checked_mul(settings.columns.bytes() as u64) != Some(at) {
            return Err(short(
                edges.saturating_mul(settings.columns.bytes() as u64).saturating_add(tail),
            ));
        }
        Ok(Self {
            path,
            file: (number < OPEN).then_some(file),
            starts,
            checks,
            columns: settings.columns,
        })
    }

    /// Calls `f` with the open file.
    fn with_file<T>(&self, f: impl FnOnce(&File) -> std::io::Result<T>) -> Result<T, StoreError> {
        match &self.file {
            Some(file) => f(file),
            None => f(&reopen(&self.path)?),
        }
        .map_err(io(&self.path))
    }

    pub(super) fn edges(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }
    pub(super) fn edges_of(&self, bucket: usize) -> u64 {
        self.starts[bucket + 1] - self.starts[bucket]
    }

    /// Reads all columns of a bucket and verifies their checksum.
    pub(super) fn read(&self, bucket: usize) -> Result<Vec<u8>, StoreError> {
        let each = self.columns.bytes() as u64;
        let mut bytes = vec![0; (self.edges_of(bucket) * each) as usize];
        self.with_file(|file| read_at(file, &mut bytes, self.starts[bucket] * each))?;
        self.compare(bucket, XxHash3_64::oneshot(&bytes))?;
        Ok(bytes)
    }

    fn compare(&self, bucket: usize, found: u64) -> Result<(), StoreError> {
        let expected = self.checks[bucket];
        if expected == found {
            return Ok(());
        }
        let (path, section) = (self.path.clone(), "edges".into());
        Err(StoreError::Damaged { path, section, block: bucket as u64, expected, found })
    }

    /// Verifies the checksum of a bucket that exceeds memory.
    pub(super) fn check(&self, bucket: usize) -> Result<(), StoreError> {
        let each = self.columns.bytes() as u64;
        let (from, to) = (self.starts[bucket] * each, self.starts[bucket + 1] * each);
        let found = self.with_file(|file| {
            let (mut hash, mut bytes) = (XxHash3_64::new(), vec![]);
            for at in (from..to).step_by(PIECE as usize) {
                bytes.resize((to - at).min(PIECE) as usize, 0);
                read_at(file, &mut bytes, at)?;
                hash.write(&bytes);
            }
            Ok(hash.finish())
        })?;
        self.compare(bucket, found)
    }

    /// Reads a range of edges of a bucket that was [checked](Self::check), with the columns in order as in
    /// [`read`](Self::read).
    pub(super) fn read_some(
        &self,
        bucket: usize,
        from: u64,
        count: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let all = self.edges_of(bucket);
        let mut at = self.starts[bucket] * self.columns.bytes() as u64;
        bytes.resize(count * self.columns.bytes(), 0);
        let mut left = &mut bytes[..];
        for width in self.columns.widths() {
            let (column, rest) = left.split_at_mut(count * width);
            self.with_file(|file| read_at(file, column, at + from * width as u64))?;
            at += all * width as u64;
            left = rest;
        }
        Ok(())
    }

    /// Frees the disk space of the buckets before `bucket`, which are in the result.
    pub(super) fn free_before(&self, bucket: usize) {
        let bytes = self.starts[bucket] * self.columns.bytes() as u64;
        // If the file cannot be opened, its disk space is freed at the end of the build.
        let _ = self.with_file(|file| {
            punch(file, bytes / 4096 * 4096);
            Ok(())
        });
    }
}

/// Frees the disk space of the first bytes of a file if the file system supports it. The length does not change.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a call of the system without a wrapper")]
fn punch(file: &File, bytes: u64) {
    use std::os::fd::AsRawFd;
    if bytes > 0 {
        // SAFETY: the descriptor is open, and the call accesses no memory of the process. If it fails, the file is
        // unchanged.
        unsafe {
            libc::fallocate(
                file.as_raw_fd(),
                libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE,
                0,
                bytes as libc::off_t,
            )
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: u64) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::settings::SelfLoops;

    /// Damage to edges and to the table of buckets is detected, for buckets that are read as a whole or in chunks, and
    /// for files that are kept open or not.
    #[test]
    fn damage_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let columns = Columns { narrow: true, ids: true, weights: false, times: false };
        let (loops, stream) = (SelfLoops::Keep, String::new());
        let settings = Settings {
            num_src: 1000,
            num_dst: 1000,
            shift: 8,
            columns,
            loops,
            simple: false,
            run_edges: 1 << 20,
            bucket_edges: 1024,
            stream,
        };
        for number in [3, OPEN + 3] {
            let mut of = RunEdges::default();
            for e in 0..300_000u32 {
                of.edges.src.push(e % 997);
                of.edges.dst.push(e * 7 % 1000);
                of.index.push(e);
            }
            let run = Sorted::default().write(dir.path(), number, &of, &settings).unwrap();
            assert_eq!(run.file.is_some(), number < OPEN);
            let good = std::fs::read(&run.path).unwrap();
            for at in [5, 700_000, good.len() - 9, good.len() - 100] {
                let mut bytes = good.clone();
                bytes[at] ^= 4;
                std::fs::write(&run.path, &bytes).unwrap();
                let checked = Run::open(dir.path(), number, &settings)
                    .and_then(|run| (0..settings.buckets()).try_for_each(|b| run.check(b)));
                assert!(matches!(checked, Err(StoreError::Damaged { .. })), "byte {at}");
            }
            std::fs::write(&run.path, &good).unwrap();
            let run = Run::open(dir.path(), number, &settings).unwrap();
            for bucket in 0..settings.buckets() {
                run.check(bucket).unwrap();
                let (all, mut some) = (run.read(bucket).unwrap(), vec![]);
                run.read_some(bucket, 0, run.edges_of(bucket) as usize, &mut some).unwrap();
                assert_eq!(all, some);
            }
        }
    }
}
