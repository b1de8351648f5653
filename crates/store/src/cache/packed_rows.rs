//! Packs the feature rows of known batches into a file, ordered by batch.

use std::path::Path;
use std::sync::Arc;

use hashbrown::HashMap;
use twox_hash::XxHash3_64;

use super::slots::{capacity, check_batch, widen};
use super::sweep::Sweep;
use crate::error::{StoreError, format, io};
use crate::io::{Read, Reader};
use crate::rows::{RowFormat, StoredRows, WIDEST};
use crate::section_writer::SectionWriter;
use crate::sections::{Header, Section, SectionFile};

/// Kind of the files, and names of their sections.
const KIND: &str = "packed";
const STARTS: &str = "starts";
const CHECKS: &str = "checks";
const HOT_IDS: &str = "hot_ids";
const HOT_ROWS: &str = "hot_rows";
/// Rows of each batch that are not in memory, by id.
const ROWS: &str = "sorted_rows";
const BLOCK_STARTS: &str = "block_starts";
const BLOCKS: &str = "blocks";
/// Places of the sections of rows.
const HOT_ROWS_AT: usize = 3;
const ROWS_AT: usize = 6;
/// Bytes per read of a batch.
const PIECE: usize = 1 << 18;

/// Packed feature rows of known batches (one seed and epoch number): the rows of a batch are one contiguous range of
/// the file, which is read sequentially. The rows that most batches use are in memory instead, under a budget (DiskGNN:
/// Liu et al., SIGMOD 2025).
///
/// ```
/// use std::sync::Arc;
/// use burn_gnn_store::{PackedRows, RowFormat, RowWriter, StoredRows};
/// # let dir = tempfile::tempdir().unwrap();
/// # let file = dir.path().join("rows");
/// let mut writer = RowWriter::create(&file, 4, 1, RowFormat::F32)?;
/// writer.put(&[1.0, 2.0, 3.0, 4.0])?;
/// writer.finish()?;
/// let (rows, batches) = (Arc::new(StoredRows::open(&file)?), [vec![3, 0], vec![1, 3]]);
/// let packed = PackedRows::write(dir.path().join("packed"), &rows, 1 << 20, || batches.iter().cloned().map(Ok))?;
/// assert_eq!(packed.gather(1, &batches[1])?, [2.0, 4.0]);
/// # Ok::<(), burn_gnn_store::StoreError>(())
/// ```
#[derive(Debug)]
pub struct PackedRows {
    file: Arc<SectionFile>,
    reader: Reader,
    width: usize,
    format: RowFormat,
    /// Start of the rows of each batch, then the total.
    starts: Vec<u64>,
    /// Hash of the ids of each batch.
    checks: Vec<u64>,
    /// Start of the blocks of each batch in bytes, then the total.
    block_starts: Vec<u64>,
    blocks: Section,
    /// Position of each row in memory.
    hot: HashMap<u32, u32>,
    hot_rows: Vec<u8>,
    offset: u64,
}

/// The rows of a batch: for each, whether it is in memory, and its number there or in `cold`.
#[derive(Debug)]
pub(super) struct ReadRows {
    locations: Vec<(bool, u32)>,
    cold: Vec<u8>,
}

impl PackedRows {
    /// Packs the rows of batches. `batches` is called twice and must return the same batches both times; the ids of a
    /// batch are distinct. `budget` bytes are used for packing (ids, rows that are read, rows to be written), and later
    /// for the rows in memory.
    ///
    /// # Errors
    /// An id that is out of range or repeated in a batch; batches that differ the second time; errors of the batches;
    /// [`StoreError::Data`].
    ///
    /// # Cost
    /// Every batch is created twice. Memory in addition to the budget: 8 bytes per row of the file, the ids of one
    /// batch, two rows, and about 16 MiB. The file of rows is read sequentially, once per `budget / 16` used rows, and
    /// at least once per `budget / 32 KiB` batches. Packed rows are read back to compute their checksums.
    pub fn write<I>(
        path: impl AsRef<Path>,
        rows: &StoredRows,
        budget: u64,
        batches: impl Fn() -> I,
    ) -> Result<Self, StoreError>
    where
        I: Iterator<Item = Result<Vec<u32>, StoreError>>,
    {
        Self::write_with_blocks(path.as_ref(), rows, budget, || {
            batches().map(|ids| ids.map(|ids| (ids, vec![])))
        })
    }

    /// [`write`](Self::write) with the blocks of each batch, as bytes.
    pub(super) fn write_with_blocks<I>(
        path: &Path,
        rows: &StoredRows,
        budget: u64,
        batches: impl Fn() -> I,
    ) -> Result<Self, StoreError>
    where
        I: Iterator<Item = Result<(Vec<u32>, Vec<u8>), StoreError>>,
    {
        let each = rows.row_bytes();
        let (mut uses, mut checks, mut blocks) = (vec![0u32; rows.num_rows()], vec![], 0);
        // Hash of the blocks of each batch.
        let mut block_checks = vec![];
        for batch in batches() {
            let (ids, bytes) = batch?;
            check_batch(&ids, rows.num_rows())?;
            ids.iter().for_each(|&id| uses[id as usize] += 1);
            checks.push(hash(&ids));
            block_checks.push(XxHash3_64::oneshot(&bytes));
            blocks += bytes.len() as u64;
        }
        let hot = hottest(&uses, capacity(rows, budget));
        let all: u64 = uses.iter().map(|&u| u64::from(u)).sum();
        let cold = all - hot.iter().map(|&id| u64::from(uses[id as usize])).sum::<u64>();
        drop(uses);
        let format_value = serde_json::to_value(rows.format())
            .unwrap_or_else(|e| unreachable!("a plain name: {e}"));
        let mut header = Header::new(KIND).with("width", rows.width()).with("format", format_value);
        let starts = 8 * (checks.len() + 1);
        let lens =
            [starts, 8 * checks.len(), 4 * hot.len(), each * hot.len(), starts].map(|n| n as u64);
        [STARTS, CHECKS, HOT_IDS, HOT_ROWS, BLOCK_STARTS]
            .into_iter()
            .zip(lens)
            .for_each(|(name, len)| header.section(name, len));
        header.section(BLOCKS, blocks);
        header.section(ROWS, cold * each as u64);
        let mut out = SectionWriter::replace(path, header)?;
        out.put(1, bytemuck::cast_slice(&checks))?;
        out.put(2, bytemuck::cast_slice(&hot))?;
        let mut sweep = Sweep::new(rows, budget, cold + hot.len() as u64)?;
        sweep.want(&mut out, (HOT_ROWS_AT, 0), &hot)?;
        let (mut start, mut block_start, mut found) = (0u64, 0u64, 0);
        let other = |why: String| {
            Err(format(path, format!("{why}; batches must only depend on their number")))
        };
        for batch in batches() {
            let (mut ids, bytes) = batch?;
            if found == checks.len() {
                return other(format!("expected {found} batches as in the first pass, found more"));
            }
            if checks[found] != hash(&ids) {
                return other(format!(
                    "batch {found}: expected the ids of the first pass, found others"
                ));
            }
            if block_checks[found] != XxHash3_64::oneshot(&bytes) {
                return other(format!(
                    "batch {found}: expected the blocks of the first pass, found others"
                ));
            }
            found += 1;
            ids.retain(|id| hot.binary_search(id).is_err());
            out.put(0, &start.to_le_bytes())?;
            out.put(4, &block_start.to_le_bytes())?;
            sweep.want(&mut out, (ROWS_AT, start * each as u64), &ids)?;
            start += ids.len() as u64;
            block_start += bytes.len() as u64;
            out.put(5, &bytes)?;
        }
        if found != checks.len() {
            let expected = checks.len();
            return other(format!(
                "expected {expected} batches as in the first pass, found {found}"
            ));
        }
        sweep.run(&mut out)?;
        drop((sweep, hot));
        out.put(0, &start.to_le_bytes())?;
        out.put(4, &block_start.to_le_bytes())?;
        out.finish(&[])?;
        Self::open(path)
    }

    /// Opens a file of [`write`](Self::write). Reads the rows that most batches use into memory.
    ///
    /// # Errors
    /// [`StoreError::Data`], [`StoreError::Truncated`], [`StoreError::Damaged`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let file = SectionFile::open(path, KIND)?;
        let width = match file.header.number(path, "width")? {
            width @ 0..=WIDEST => width as usize,
            width => {
                return Err(format(
                    path,
                    format!("expected rows of at most {WIDEST} numbers, found {width}"),
                ));
            }
        };
        let found = file.header.facts.get("format").cloned().unwrap_or_default();
        let row_format: RowFormat = serde_json::from_value(found).map_err(|e| {
            format(path, format!("expected a format of rows in the header, found {e}"))
        })?;
        let whole = |name: &str| {
            file.section(name).ok_or_else(|| {
                format(path, format!("expected a section `{name}`, found none; pack again"))
            })
        };
        let section = |name: &str| {
            let section = whole(name)?;
            section.check_range(0..section.bytes().len())?;
            Ok::<_, StoreError>(section)
        };
        let (starts, checks) = (
            section(STARTS)?.numbers::<u64>().to_vec(),
            section(CHECKS)?.numbers::<u64>().to_vec(),
        );
        let ids = section(HOT_IDS)?.numbers::<u32>().to_vec();
        let bytes_of = |name: &str| Ok::<_, StoreError>(whole(name)?.bytes().len() as u64);
        let (hot_rows, rows) = (whole(HOT_ROWS)?, bytes_of(ROWS)?);
        let (each, last) =
            (row_format.row_bytes(width) as u64, starts.last().copied().unwrap_or_default());
        let (block_starts, blocks) =
            (section(BLOCK_STARTS)?.numbers::<u64>().to_vec(), whole(BLOCKS)?);
        let agree = starts.len() == checks.len() + 1
            && starts.is_sorted()
            && block_starts.len() == starts.len()
            && block_starts.is_sorted()
            && block_starts.last().copied() == Some(blocks.bytes().len() as u64)
            && last.checked_mul(each) == Some(rows);
        if !agree || hot_rows.bytes().len() as u64 != ids.len() as u64 * each {
            return Err(format(
                path,
                "expected sections of matching lengths, found others; pack again",
            ));
        }
        let offset = file.header.sections.iter().find(|p| p.name == ROWS).map_or(0, |p| p.offset);
        let hot = ids.into_iter().zip(0..).collect();
        let reader = Reader::open(path)?;
        let hot_rows = hot_rows.read(&reader)?;
        let format = row_format;
        Ok(Self {
            reader,
            file,
            width,
            format,
            starts,
            checks,
            block_starts,
            blocks,
            hot,
            hot_rows,
            offset,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }
    /// Number of batches.
    pub fn batches(&self) -> usize {
        self.checks.len()
    }
    /// Number of rows in memory.
    pub fn rows_in_memory(&self) -> usize {
        self.hot.len()
    }
    /// Bytes of rows and blocks of all batches.
    pub fn read_bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or_default() * self.format.row_bytes(self.width) as u64
            + self.block_starts.last().copied().unwrap_or_default()
    }
    /// Verifies the checksums of all blocks.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    pub fn verify(&self) -> Result<(), StoreError> {
        self.file.verify()
    }

    /// The blocks of a batch, as bytes; empty if only rows were packed.
    pub(super) fn blocks(&self, batch: usize) -> Result<&[u8], StoreError> {
        if batch >= self.batches() {
            let (path, all) = (&self.file.path, self.batches());
            return Err(format(path, format!("expected a batch of {all}, got batch {batch}")));
        }
        let range = self.block_starts[batch] as usize..self.block_starts[batch + 1] as usize;
        if !range.is_empty() {
            self.blocks.will_need(range.clone());
        }
        self.blocks.check_range(range.clone())?;
        Ok(&self.blocks.bytes()[range])
    }

    /// Gathers the rows of a batch as f32, in the order of its ids.
    ///
    /// # Errors
    /// A batch out of range; ids that differ from those at packing; the file cannot be read.
    pub fn gather(&self, batch: usize, ids: &[u32]) -> Result<Vec<f32>, StoreError> {
        Ok(self.decode(&self.read(batch, ids)?))
    }

    /// Reads the rows of a batch in the stored format.
    pub(super) fn read(&self, batch: usize, ids: &[u32]) -> Result<ReadRows, StoreError> {
        if self.checks.get(batch) != Some(&hash(ids)) {
            let why = format!(
                "batch {batch} of {}: expected the ids at packing, found others; use the same sampler and seed",
                self.checks.len()
            );
            return Err(format(&self.file.path, why));
        }
        let each = self.format.row_bytes(self.width);
        let mut locations: Vec<(bool, u32)> =
            ids.iter().map(|id| self.hot.get(id).map_or((false, 0), |&at| (true, at))).collect();
        let mut by_id: Vec<(u32, u32)> =
            ids.iter().copied().zip(0..).filter(|&(_, at)| !locations[at as usize].0).collect();
        let (expected, found) = (self.starts[batch + 1] - self.starts[batch], by_id.len());
        if expected != found as u64 {
            let why = format!(
                "batch {batch}: expected {expected} rows that are not in memory, found {found}; pack the batches again"
            );
            return Err(format(&self.file.path, why));
        }
        let (from, to) = (self.starts[batch] * each as u64, self.starts[batch + 1] * each as u64);
        let mut cold = vec![0; (to - from) as usize];
        let piece =
            |at: u64| Read { at: self.offset + at, len: (to - at).min(PIECE as u64) as usize };
        let reads: Vec<Read> = (from..to).step_by(PIECE).map(piece).collect();
        self.reader.read(&reads, &mut cold).map_err(io(&self.file.path))?;
        by_id.sort_unstable();
        by_id.iter().zip(0..).for_each(|(&(_, at), i)| locations[at as usize].1 = i);
        Ok(ReadRows { locations, cold })
    }

    /// Decodes rows of [`read`](Self::read) to f32.
    pub(super) fn decode(&self, read: &ReadRows) -> Vec<f32> {
        let (each, ReadRows { locations, cold }) = (self.format.row_bytes(self.width), read);
        let mut out = vec![0.0; locations.len() * self.width];
        let row = |(is_hot, at)| {
            &(if is_hot { &self.hot_rows } else { cold })[at as usize * each..][..each]
        };
        widen((self.format, self.width), locations, row, &mut out);
        out
    }
}

fn hash(ids: &[u32]) -> u64 {
    XxHash3_64::oneshot(bytemuck::cast_slice(ids))
}

/// The most frequently used rows, of those that are used more than once, in ascending order.
fn hottest(uses: &[u32], capacity: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..).zip(uses).filter(|u| *u.1 > 1).map(|u| u.0).collect();
    if ids.len() > capacity {
        if capacity > 0 {
            ids.select_nth_unstable_by_key(capacity - 1, |&id| {
                (std::cmp::Reverse(uses[id as usize]), id)
            });
        }
        ids.truncate(capacity);
    }
    ids.sort_unstable();
    ids
}
