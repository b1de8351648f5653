//! Reads section files: files of arrays whose blocks have checksums, which are verified on first use.
//!
//! ```text
//! byte 0            header page: magic, version, length, JSON description, checksum
//! 4096 · k          section 0    array of little-endian numbers, page-aligned
//! 4096 · m          section 1
//! ...
//! end of sections   checksums    XXH3 of each block of 64 KiB of every section
//! ```

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

use burn_gnn_files::internal::open;
use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::error::{StoreError, format, io};
use crate::io::{Read, Reader};

/// First bytes of every section file.
const MAGIC: &[u8; 8] = b"BGSTORE\n";
/// Version of the format that this crate writes and reads.
const VERSION: u32 = 1;
/// Alignment of sections, and length of the header.
pub(crate) const PAGE: u64 = 4096;
/// Log2 of the bytes per checksum.
pub(crate) const BLOCK_BITS: u32 = 16;
pub(crate) const BLOCK: usize = 1 << BLOCK_BITS;
/// Time per position in nanoseconds above which a request is assumed to have missed pages in memory: without prefetch
/// (a request in memory takes 20 to 100), and with prefetch (up to 700 if no page was missing).
const COLD_NANOS: [u128; 2] = [300, 1_000];
/// Below this number of positions the measured time is noise.
const MIN_SAMPLES: usize = 64;

/// Description of a file: its kind, its facts and its sections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// Kind of the file: `csc`, `rows`, `packed`.
    pub(crate) kind: String,
    /// Values that the kind defines.
    pub(crate) facts: serde_json::Map<String, serde_json::Value>,
    pub(crate) sections: Vec<SectionEntry>,
    /// Bytes of the whole file.
    pub(crate) bytes: u64,
}

/// Name and location of a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SectionEntry {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Byte of the checksums of its blocks.
    pub(crate) checks: u64,
}

impl SectionEntry {
    pub(crate) fn blocks(&self) -> u64 {
        self.bytes.div_ceil(BLOCK as u64)
    }
}

impl Header {
    pub(crate) fn new(kind: &str) -> Self {
        Self {
            version: VERSION,
            kind: kind.into(),
            facts: serde_json::Map::new(),
            sections: vec![],
            bytes: PAGE,
        }
    }
    #[must_use]
    pub(crate) fn with(mut self, fact: &str, value: impl Into<serde_json::Value>) -> Self {
        self.facts.insert(fact.into(), value.into());
        self
    }
    /// Appends a section with space for `bytes` bytes.
    pub(crate) fn section(&mut self, name: &str, bytes: u64) {
        self.sections.push(SectionEntry {
            name: name.into(),
            offset: self.bytes,
            bytes,
            checks: 0,
        });
        self.bytes += bytes.next_multiple_of(PAGE);
    }
    /// Assigns the locations of checksums, after all sections.
    pub(crate) fn place_checks(&mut self) {
        for entry in &mut self.sections {
            entry.checks = self.bytes;
            self.bytes += 8 * entry.blocks();
        }
    }
    pub(crate) fn number(&self, path: &Path, fact: &str) -> Result<u64, StoreError> {
        let found = self.facts.get(fact);
        let wrong =
            || format(path, format!("expected a number `{fact}` in the header, found {found:?}"));
        found.and_then(serde_json::Value::as_u64).ok_or_else(wrong)
    }
    /// The header page.
    pub(crate) fn page(&self, path: &Path) -> Result<Vec<u8>, StoreError> {
        let text = serde_json::to_vec(self).map_err(|e| format(path, e.to_string()))?;
        let mut page = Vec::with_capacity(PAGE as usize);
        page.extend_from_slice(MAGIC);
        page.extend_from_slice(&(text.len() as u64).to_le_bytes());
        page.extend_from_slice(&XxHash3_64::oneshot(&text).to_le_bytes());
        page.extend_from_slice(&text);
        if page.len() > PAGE as usize {
            return Err(format(
                path,
                format!("expected a header of at most {PAGE} bytes, found {}", page.len()),
            ));
        }
        page.resize(PAGE as usize, 0);
        Ok(page)
    }
    fn parse(path: &Path, page: &[u8]) -> Result<Self, StoreError> {
        let word = |at: usize| {
            page.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
        };
        if page.get(..8) != Some(&MAGIC[..]) {
            return Err(format(
                path,
                "expected a file that `burn-gnn-store` wrote, found other first bytes",
            ));
        }
        let (Some(len), Some(expected)) = (word(8), word(16)) else {
            return Err(format(path, "expected a header, found the end of the file"));
        };
        let text = usize::try_from(len).ok().and_then(|len| page.get(24..)?.get(..len));
        let text = text.ok_or_else(|| {
            format(path, format!("expected a header of at most {PAGE} bytes, found {len}"))
        })?;
        let found = XxHash3_64::oneshot(text);
        if found != expected {
            return Err(StoreError::Damaged {
                path: path.into(),
                section: "header".into(),
                block: 0,
                expected,
                found,
            });
        }
        let header: Self = serde_json::from_slice(text)
            .map_err(|e| format(path, format!("expected a description, found {e}")))?;
        if header.version != VERSION {
            return Err(burn_gnn_files::DataError::Version {
                path: path.into(),
                found: header.version.to_string(),
                expected: VERSION,
            }
            .into());
        }
        Ok(header)
    }
}

/// An open, memory-mapped section file. Overwriting a mapped file changes the data, and truncating it kills the program
/// on the next access. Writers of this crate replace files by a rename, which is safe.
#[derive(Debug)]
pub(crate) struct SectionFile {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    map: Mmap,
}

impl SectionFile {
    /// Opens a file and reads its header only.
    pub(crate) fn open(path: &Path, kind: &str) -> Result<Arc<Self>, StoreError> {
        if cfg!(target_endian = "big") {
            return Err(format(
                path,
                "expected a little-endian machine, since the file has little-endian numbers",
            ));
        }
        let (file, bytes) = open(path)?;
        if bytes < PAGE {
            return Err(StoreError::Truncated { path: path.into(), expected: PAGE, found: bytes });
        }
        let map = map(path, &file)?;
        let header = Header::parse(path, &map[..PAGE as usize])?;
        if header.kind != kind {
            return Err(format(
                path,
                format!("expected a file of kind `{kind}`, found `{}`", header.kind),
            ));
        }
        if header.bytes != bytes {
            return Err(StoreError::Truncated {
                path: path.into(),
                expected: header.bytes,
                found: bytes,
            });
        }
        for entry in &header.sections {
            let inside = |from: u64, len: u64| {
                from.is_multiple_of(8) && from.checked_add(len).is_some_and(|end| end <= bytes)
            };
            let pages = entry.offset.is_multiple_of(PAGE);
            if !(pages
                && inside(entry.offset, entry.bytes)
                && inside(entry.checks, entry.blocks().saturating_mul(8)))
            {
                return Err(format(
                    path,
                    format!(
                        "expected section `{}` within {bytes} bytes, found {entry:?}",
                        entry.name
                    ),
                ));
            }
        }
        // Rows are read at random, so readahead would be wasted.
        hint(&map, Hint::Random, 0..map.len());
        Ok(Arc::new(Self { path: path.into(), header, map }))
    }

    /// Looks up a section by name.
    pub(crate) fn section(self: &Arc<Self>, name: &str) -> Option<Section> {
        let entry = self.header.sections.iter().find(|p| p.name == name)?.clone();
        let verified = (0..entry.blocks()).map(|_| AtomicU8::new(0)).collect();
        Some(Section {
            file: self.clone(),
            left: AtomicU64::new(entry.blocks()),
            entry,
            verified,
            cold: AtomicBool::new(false),
        })
    }

    /// Looks up a required section of `expected` bytes.
    pub(crate) fn required(
        self: &Arc<Self>,
        name: &str,
        expected: u64,
    ) -> Result<Section, StoreError> {
        let found = self.section(name).ok_or_else(|| {
            format(&self.path, format!("expected a section `{name}`, found none"))
        })?;
        if found.entry.bytes != expected {
            let why =
                format!("section `{name}`: expected {expected} bytes, found {}", found.entry.bytes);
            return Err(format(&self.path, why));
        }
        Ok(found)
    }

    /// Verifies the checksums of all blocks.
    pub(crate) fn verify(self: &Arc<Self>) -> Result<(), StoreError> {
        hint(&self.map, Hint::Sequential, 0..self.map.len());
        for entry in &self.header.sections {
            let section = self
                .section(&entry.name)
                .unwrap_or_else(|| unreachable!("a section of this header"));
            (0..entry.blocks()).try_for_each(|block| section.compare(block as usize))?;
        }
        hint(&self.map, Hint::Random, 0..self.map.len());
        Ok(())
    }
}

/// Access pattern of mapped bytes.
#[derive(Clone, Copy)]
enum Hint {
    Random,
    Sequential,
    WillNeed,
}

/// Passes the access pattern to the operating system, as an optimisation only.
#[cfg(unix)]
fn hint(map: &Mmap, how: Hint, range: Range<usize>) {
    use memmap2::Advice;
    let advice = match how {
        Hint::Random => Advice::Random,
        Hint::Sequential => Advice::Sequential,
        Hint::WillNeed => Advice::WillNeed,
    };
    let _ = map.advise_range(advice, range.start, range.len());
}

#[cfg(not(unix))]
fn hint(_: &Mmap, _: Hint, _: Range<usize>) {}

#[expect(unsafe_code, reason = "maps a file")]
fn map(path: &Path, file: &std::fs::File) -> Result<Mmap, StoreError> {
    // SAFETY: the map is read-only, and its length is that of the file. The documentation requires that the file is not
    // changed while it is mapped, and no unsafe code relies on its content.
    unsafe { Mmap::map(file) }.map_err(io(path))
}

/// An array in a file. The checksum of a block is verified on its first use.
#[derive(Debug)]
pub(crate) struct Section {
    file: Arc<SectionFile>,
    entry: SectionEntry,
    /// Whether each block is verified.
    verified: Box<[AtomicU8]>,
    /// Number of blocks that are not verified.
    left: AtomicU64,
    /// Whether the last request missed pages in memory.
    cold: AtomicBool,
}

/// A request that reads positions of a section in any order. Drop it after the last read.
pub(crate) struct Request<'a> {
    section: &'a Section,
    count: usize,
    prefetched: bool,
    began: Instant,
}

impl Drop for Request<'_> {
    /// Determines from the elapsed time whether pages were missing in memory.
    fn drop(&mut self) {
        if self.count >= MIN_SAMPLES {
            let most = COLD_NANOS[usize::from(self.prefetched)];
            self.section.cold.store(
                self.began.elapsed().as_nanos() > most * self.count as u128,
                Ordering::Relaxed,
            );
        }
    }
}

impl Section {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.file.map[self.entry.offset as usize..][..self.entry.bytes as usize]
    }
    /// The numbers of the section. Call [`check`](Self::check) before reading one.
    pub(crate) fn numbers<T: bytemuck::Pod>(&self) -> &[T] {
        let bytes = self.bytes();
        bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
    }
    /// Verifies the block of byte `at`.
    #[inline(always)]
    pub(crate) fn check(&self, at: usize) -> Result<(), StoreError> {
        let block = at >> BLOCK_BITS;
        if self.verified[block].load(Ordering::Relaxed) == 0 { self.first(block) } else { Ok(()) }
    }
    /// Verifies all blocks of a range of bytes.
    pub(crate) fn check_range(&self, range: Range<usize>) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        (range.start >> BLOCK_BITS..=(range.end - 1) >> BLOCK_BITS)
            .try_for_each(|block| self.check(block << BLOCK_BITS))
    }
    #[cold]
    fn first(&self, block: usize) -> Result<(), StoreError> {
        // Pages that are not in memory are requested by one read.
        self.will_need(block * BLOCK..self.bytes().len().min((block + 1) * BLOCK));
        self.compare(block)?;
        if self.verified[block].swap(1, Ordering::Relaxed) == 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
    fn compare(&self, block: usize) -> Result<(), StoreError> {
        let bytes = self.bytes();
        self.compare_bytes(block, &bytes[block * BLOCK..bytes.len().min((block + 1) * BLOCK)])
    }
    fn compare_bytes(&self, block: usize, bytes: &[u8]) -> Result<(), StoreError> {
        let found = XxHash3_64::oneshot(bytes);
        let checks: &[u64] = bytemuck::cast_slice(
            &self.file.map[self.entry.checks as usize..][..8 * self.verified.len()],
        );
        let expected = checks[block];
        if found == expected {
            return Ok(());
        }
        let (path, section) = (self.file.path.clone(), self.entry.name.clone());
        Err(StoreError::Damaged { path, section, block: block as u64, expected, found })
    }
    /// Reads and verifies all bytes, by `reader` of the same file. It bypasses the page cache if possible: pages of the
    /// map would take the same memory again.
    pub(crate) fn read(&self, reader: &Reader) -> Result<Vec<u8>, StoreError> {
        let mut out = vec![0; self.entry.bytes as usize];
        let piece = |i: u64| Read {
            at: self.entry.offset + i,
            len: (self.entry.bytes - i).min(BLOCK as u64) as usize,
        };
        let reads: Vec<Read> = (0..self.entry.bytes).step_by(BLOCK).map(piece).collect();
        reader.read(&reads, &mut out).map_err(io(&self.file.path))?;
        out.chunks(BLOCK)
            .enumerate()
            .try_for_each(|(block, bytes)| self.compare_bytes(block, bytes))?;
        Ok(out)
    }
    /// Whether all blocks are verified, so that [`check`](Self::check) does nothing.
    pub(crate) fn is_all_verified(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
    /// Announces the bytes that the caller reads next. If the last request missed pages in memory, the pages of all
    /// positions are prefetched together, so that the disk gets many requests at a time.
    pub(crate) fn request(&self, positions: impl ExactSizeIterator<Item = u64>) -> Request<'_> {
        let prefetched = self.cold.load(Ordering::Relaxed);
        let request =
            Request { section: self, count: positions.len(), prefetched, began: Instant::now() };
        if prefetched {
            self.prefetch(positions);
        }
        request
    }
    fn prefetch(&self, positions: impl Iterator<Item = u64>) {
        let end = self.bytes().len() as u64;
        let unit = |at: u64| {
            // A block that is not verified yet is read as a whole. The caller reports positions out of range.
            let verified = self
                .verified
                .get((at >> BLOCK_BITS) as usize)
                .is_none_or(|v| v.load(Ordering::Relaxed) != 0);
            let size = if verified { PAGE } else { BLOCK as u64 };
            (at / size * size).min(end)..(at / size * size + size).min(end)
        };
        let mut ranges: Vec<Range<u64>> = positions.map(unit).collect();
        ranges.sort_unstable_by_key(|r| (r.start, r.end));
        for range in ranges.chunk_by(|a, b| b.start <= a.end) {
            let last = range.last().map_or(0, |r| r.end);
            self.will_need(range[0].start as usize..last as usize);
        }
    }
    /// Asks the operating system to read bytes that are used next.
    pub(crate) fn will_need(&self, range: Range<usize>) {
        let at = self.entry.offset as usize;
        hint(&self.file.map, Hint::WillNeed, at + range.start..at + range.end);
    }
}
