//! Runs of edges, sorted by bucket: ranges of destinations.

use std::fs::File;
use std::hash::Hasher;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::settings::{Columns, Settings};
use super::stream::EdgeChunk;
use crate::error::{StoreError, io};
use crate::section_writer::read_at;
use crate::sections::BLOCK;

/// Edges of a run, as they came.
#[derive(Debug, Default)]
pub(super) struct RunEdges {
    pub(super) edges: EdgeChunk,
    /// Which edge of those that were read for this run.
    pub(super) index: Vec<u32>,
    /// How many were read for this run.
    pub(super) read: u64,
}

/// A run on disk: buckets one after the other, in each the columns one after the other.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// Where each bucket begins, in edges; one more than there are buckets.
    starts: Vec<u64>,
    checks: Vec<u64>,
    columns: Columns,
}

pub(super) fn run_path(dir: &Path, number: usize) -> PathBuf {
    dir.join(format!("run-{number:05}"))
}

/// Values in the order of buckets, inside of a bucket as they came.
fn scatter<T: Copy + Default>(dst: &[u32], shift: u32, starts: &[u32], values: impl Iterator<Item = T>, out: &mut Vec<T>) {
    let mut next = starts.to_vec();
    out.clear();
    out.resize(dst.len(), T::default());
    for (&v, value) in dst.iter().zip(values) {
        let at = &mut next[(v >> shift) as usize];
        out[*at as usize] = value;
        *at += 1;
    }
}

/// Memory of a sort, used again for the next one.
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
    pub(super) fn write(&mut self, dir: &Path, number: usize, of: &RunEdges, settings: &Settings) -> Result<Run, StoreError> {
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
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).map_err(io(&path))?;
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
                .and_then(|()| if columns.ids { put(bytemuck::cast_slice(&self.index[range.clone()])) } else { Ok(()) })
                .and_then(|()| if columns.weights { put(bytemuck::cast_slice(&self.weights[range.clone()])) } else { Ok(()) })
                .and_then(|()| if columns.times { put(bytemuck::cast_slice(&self.times[range.clone()])) } else { Ok(()) });
            written.map_err(io(&path))?;
            checks.push(hash.finish());
        }
        let starts: Vec<u64> = starts.into_iter().map(u64::from).collect();
        let tail = out.write_all(bytemuck::cast_slice(&starts)).and_then(|()| out.write_all(bytemuck::cast_slice(&checks)));
        let file = tail.and_then(|()| out.into_inner().map_err(std::io::IntoInnerError::into_error)).map_err(io(&path))?;
        file.sync_data().map_err(io(&path))?;
        Ok(Run { path, file, starts, checks, columns })
    }
}

impl Run {
    /// A run that was written before.
    pub(super) fn open(dir: &Path, number: usize, settings: &Settings) -> Result<Self, StoreError> {
        let path = run_path(dir, number);
        let file = File::options().read(true).write(true).open(&path).map_err(io(&path))?;
        let found = file.metadata().map_err(io(&path))?.len();
        let buckets = settings.buckets();
        let tail = 8 * (2 * buckets as u64 + 1);
        let (mut starts, mut checks) = (vec![0u64; buckets + 1], vec![0u64; buckets]);
        let short = |expected| StoreError::Truncated { path: path.clone(), expected, found };
        let at = found.checked_sub(tail).ok_or_else(|| short(tail))?;
        read_at(&file, bytemuck::cast_slice_mut(&mut starts), at).map_err(io(&path))?;
        read_at(&file, bytemuck::cast_slice_mut(&mut checks), at + 8 * (buckets as u64 + 1)).map_err(io(&path))?;
        let edges = starts[buckets];
        if !starts.is_sorted() || edges.checked_mul(settings.columns.bytes() as u64) != Some(at) {
            return Err(short(edges.saturating_mul(settings.columns.bytes() as u64).saturating_add(tail)));
        }
        Ok(Self { path, file, starts, checks, columns: settings.columns })
    }

    pub(super) fn edges(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }
    pub(super) fn edges_of(&self, bucket: usize) -> u64 {
        self.starts[bucket + 1] - self.starts[bucket]
    }

    /// All columns of a bucket, compared with their checksum.
    pub(super) fn read(&self, bucket: usize) -> Result<Vec<u8>, StoreError> {
        let each = self.columns.bytes() as u64;
        let mut bytes = vec![0; (self.edges_of(bucket) * each) as usize];
        read_at(&self.file, &mut bytes, self.starts[bucket] * each).map_err(io(&self.path))?;
        let (expected, found) = (self.checks[bucket], XxHash3_64::oneshot(&bytes));
        if expected != found {
            let (path, section) = (self.path.clone(), "edges".into());
            return Err(StoreError::Damaged { path, section, block: bucket as u64, expected, found });
        }
        Ok(bytes)
    }

    /// Some edges of a bucket, with the columns one after the other as in [`read`](Self::read).
    pub(super) fn read_some(&self, bucket: usize, from: u64, count: usize, bytes: &mut Vec<u8>) -> Result<(), StoreError> {
        let all = self.edges_of(bucket);
        let mut at = self.starts[bucket] * self.columns.bytes() as u64;
        bytes.resize(count * self.columns.bytes(), 0);
        let mut left = &mut bytes[..];
        for width in self.columns.widths() {
            let (column, rest) = left.split_at_mut(count * width);
            read_at(&self.file, column, at + from * width as u64).map_err(io(&self.path))?;
            at += all * width as u64;
            left = rest;
        }
        Ok(())
    }

    /// Gives back the disk of the buckets before `bucket`, which are in the result.
    pub(super) fn free_before(&self, bucket: usize) {
        let bytes = self.starts[bucket] * self.columns.bytes() as u64;
        punch(&self.file, bytes / 4096 * 4096);
    }
}

/// Frees the disk of the first bytes of a file, where the file system can. The file keeps its length.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a call of the system without a wrapper")]
fn punch(file: &File, bytes: u64) {
    use std::os::fd::AsRawFd;
    if bytes > 0 {
        // SAFETY: the descriptor is open; the call reads no memory of the process. A refusal leaves the file as it is.
        unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, 0, bytes as libc::off_t) };
    }
}

#[cfg(not(target_os = "linux"))]
fn punch(_: &File, _: u64) {}
