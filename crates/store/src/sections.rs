//! Files of sections: arrays in blocks with checksums that are compared when a block is first read.
//!
//! A file is a header page, its sections, each on pages of its own, and the checksums of all blocks. Numbers are little endian.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use burn_gnn_files::internal::open;
use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::error::{StoreError, format, io};

/// How every file of this crate begins.
const MAGIC: &[u8; 8] = b"BGSTORE\n";
/// The version that this program writes and reads.
const VERSION: u32 = 1;
/// Alignment of sections, and length of the header.
pub(crate) const PAGE: u64 = 4096;
/// Bytes under one checksum: 2^16.
pub(crate) const BLOCK_BITS: u32 = 16;
pub(crate) const BLOCK: usize = 1 << BLOCK_BITS;

/// What a file is, and where its sections are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) version: u32,
    /// What is in the file: `csc`, `rows`, `packed`.
    pub(crate) kind: String,
    /// What the kind has to say.
    pub(crate) facts: serde_json::Map<String, serde_json::Value>,
    pub(crate) sections: Vec<Place>,
    /// Bytes of the whole file.
    pub(crate) bytes: u64,
}

/// Where a section is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Where the checksums of its blocks are.
    pub(crate) checks: u64,
}

impl Place {
    pub(crate) fn blocks(&self) -> u64 {
        self.bytes.div_ceil(BLOCK as u64)
    }
}

impl Header {
    pub(crate) fn new(kind: &str) -> Self {
        Self { version: VERSION, kind: kind.into(), facts: serde_json::Map::new(), sections: vec![], bytes: PAGE }
    }
    #[must_use]
    pub(crate) fn with(mut self, fact: &str, value: impl Into<serde_json::Value>) -> Self {
        self.facts.insert(fact.into(), value.into());
        self
    }
    /// Appends a section of at most `bytes` bytes; what follows begins behind them.
    pub(crate) fn section(&mut self, name: &str, bytes: u64) {
        self.sections.push(Place { name: name.into(), offset: self.bytes, bytes, checks: 0 });
        self.bytes += bytes.next_multiple_of(PAGE);
    }
    /// Says where checksums are, behind all sections.
    pub(crate) fn place_checks(&mut self) {
        for place in &mut self.sections {
            place.checks = self.bytes;
            self.bytes += 8 * place.blocks();
        }
    }
    pub(crate) fn number(&self, path: &Path, fact: &str) -> Result<u64, StoreError> {
        let found = self.facts.get(fact);
        let wrong = || format(path, format!("expected a number `{fact}` in the header, found {found:?}"));
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
            return Err(format(path, format!("expected a header of at most {PAGE} bytes, found {}", page.len())));
        }
        page.resize(PAGE as usize, 0);
        Ok(page)
    }
    fn parse(path: &Path, page: &[u8]) -> Result<Self, StoreError> {
        let word = |at: usize| page.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
        if page.get(..8) != Some(&MAGIC[..]) {
            return Err(format(path, "expected a file that `burn-gnn-store` wrote, found another beginning"));
        }
        let (Some(len), Some(expected)) = (word(8), word(16)) else { return Err(format(path, "expected a header, found the end")) };
        let text = usize::try_from(len).ok().and_then(|len| page.get(24..)?.get(..len));
        let text = text.ok_or_else(|| format(path, format!("expected a header of at most {PAGE} bytes, found {len}")))?;
        let found = XxHash3_64::oneshot(text);
        if found != expected {
            return Err(StoreError::Damaged { path: path.into(), section: "header".into(), block: 0, expected, found });
        }
        let header: Self = serde_json::from_slice(text).map_err(|e| format(path, format!("expected a description, found {e}")))?;
        if header.version != VERSION {
            return Err(
                burn_gnn_files::DataError::Version { path: path.into(), found: header.version.to_string(), expected: VERSION }.into()
            );
        }
        Ok(header)
    }
}

/// An open file of sections, mapped. Whoever changes it meanwhile changes what is read, or ends the program where it is cut
/// short; files are replaced by a rename, which does no harm.
#[derive(Debug)]
pub(crate) struct SectionFile {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    map: Mmap,
}

impl SectionFile {
    /// Reads the header alone.
    pub(crate) fn open(path: &Path, kind: &str) -> Result<Arc<Self>, StoreError> {
        if cfg!(target_endian = "big") {
            return Err(format(path, "expected a machine of little-endian numbers, as the file has them"));
        }
        let (file, bytes) = open(path)?;
        if bytes < PAGE {
            return Err(StoreError::Truncated { path: path.into(), expected: PAGE, found: bytes });
        }
        let map = map(path, &file)?;
        let header = Header::parse(path, &map[..PAGE as usize])?;
        if header.kind != kind {
            return Err(format(path, format!("expected a file of kind `{kind}`, found `{}`", header.kind)));
        }
        if header.bytes != bytes {
            return Err(StoreError::Truncated { path: path.into(), expected: header.bytes, found: bytes });
        }
        for place in &header.sections {
            let inside = |from: u64, len: u64| from.is_multiple_of(8) && from.checked_add(len).is_some_and(|end| end <= bytes);
            let pages = place.offset.is_multiple_of(PAGE);
            if !(pages && inside(place.offset, place.bytes) && inside(place.checks, place.blocks().saturating_mul(8))) {
                return Err(format(path, format!("expected section `{}` inside of {bytes} bytes, found {place:?}", place.name)));
            }
        }
        // Rows are anywhere: what is read around them would be for nothing.
        hint(&map, Hint::Random, 0..map.len());
        Ok(Arc::new(Self { path: path.into(), header, map }))
    }

    /// A section by name.
    pub(crate) fn section(self: &Arc<Self>, name: &str) -> Option<Section> {
        let place = self.header.sections.iter().find(|p| p.name == name)?.clone();
        let verified = (0..place.blocks()).map(|_| AtomicU8::new(0)).collect();
        Some(Section { file: self.clone(), left: AtomicU64::new(place.blocks()), place, verified })
    }

    /// A section that must be there, of `expected` bytes.
    pub(crate) fn required(self: &Arc<Self>, name: &str, expected: u64) -> Result<Section, StoreError> {
        let found = self.section(name).ok_or_else(|| format(&self.path, format!("expected a section `{name}`, found none")))?;
        if found.place.bytes != expected {
            let why = format!("section `{name}`: expected {expected} bytes, found {}", found.place.bytes);
            return Err(format(&self.path, why));
        }
        Ok(found)
    }

    /// Compares every block with its checksum.
    pub(crate) fn verify(self: &Arc<Self>) -> Result<(), StoreError> {
        hint(&self.map, Hint::Sequential, 0..self.map.len());
        for place in &self.header.sections {
            let section = self.section(&place.name).unwrap_or_else(|| unreachable!("a section of this header"));
            (0..place.blocks()).try_for_each(|block| section.compare(block as usize))?;
        }
        hint(&self.map, Hint::Random, 0..self.map.len());
        Ok(())
    }
}

/// How bytes of a map will be read.
#[derive(Clone, Copy)]
enum Hint {
    Random,
    Sequential,
    WillNeed,
}

/// Tells the system; where it takes no hints, bytes are read when they are used.
#[cfg(unix)]
fn hint(map: &Mmap, how: Hint, range: std::ops::Range<usize>) {
    use memmap2::Advice;
    let advice = match how {
        Hint::Random => Advice::Random,
        Hint::Sequential => Advice::Sequential,
        Hint::WillNeed => Advice::WillNeed,
    };
    let _ = map.advise_range(advice, range.start, range.len());
}

#[cfg(not(unix))]
fn hint(_: &Mmap, _: Hint, _: std::ops::Range<usize>) {}

#[expect(unsafe_code, reason = "maps a file")]
fn map(path: &Path, file: &std::fs::File) -> Result<Mmap, StoreError> {
    // SAFETY: the map is read-only, and its length is that of the file. The documentation asks that nobody changes the file
    // meanwhile; no unsafe code relies on a byte of it.
    unsafe { Mmap::map(file) }.map_err(io(path))
}

/// An array in a file. A block is compared with its checksum when it is first asked for.
#[derive(Debug)]
pub(crate) struct Section {
    file: Arc<SectionFile>,
    place: Place,
    /// Whether a block was compared.
    verified: Box<[AtomicU8]>,
    /// Blocks that were not.
    left: AtomicU64,
}

impl Section {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.file.map[self.place.offset as usize..][..self.place.bytes as usize]
    }
    /// The numbers of the section; call [`check`](Self::check) before one is used.
    pub(crate) fn numbers<T: bytemuck::Pod>(&self) -> &[T] {
        let bytes = self.bytes();
        bytemuck::cast_slice(&bytes[..bytes.len() / size_of::<T>() * size_of::<T>()])
    }
    /// Whether the block of byte `at` is what was written.
    #[inline(always)]
    pub(crate) fn check(&self, at: usize) -> Result<(), StoreError> {
        let block = at >> BLOCK_BITS;
        if self.verified[block].load(Ordering::Relaxed) == 0 { self.first(block) } else { Ok(()) }
    }
    /// [`check`](Self::check) of all bytes of a range.
    pub(crate) fn check_range(&self, range: std::ops::Range<usize>) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        (range.start >> BLOCK_BITS..=(range.end - 1) >> BLOCK_BITS).try_for_each(|block| self.check(block << BLOCK_BITS))
    }
    #[cold]
    fn first(&self, block: usize) -> Result<(), StoreError> {
        // As one read, where its pages are not in memory.
        self.will_need(block * BLOCK..self.bytes().len().min((block + 1) * BLOCK));
        self.compare(block)?;
        if self.verified[block].swap(1, Ordering::Relaxed) == 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }
    fn compare(&self, block: usize) -> Result<(), StoreError> {
        let bytes = self.bytes();
        let found = XxHash3_64::oneshot(&bytes[block * BLOCK..bytes.len().min((block + 1) * BLOCK)]);
        let checks: &[u64] = bytemuck::cast_slice(&self.file.map[self.place.checks as usize..][..8 * self.verified.len()]);
        let expected = checks[block];
        if found == expected {
            return Ok(());
        }
        let (path, section) = (self.file.path.clone(), self.place.name.clone());
        Err(StoreError::Damaged { path, section, block: block as u64, expected, found })
    }
    /// Whether every block was compared: nothing is left to [check](Self::check).
    pub(crate) fn is_all_verified(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
    pub(crate) fn is_verified(&self, at: usize) -> bool {
        self.verified[at >> BLOCK_BITS].load(Ordering::Relaxed) != 0
    }
    /// Asks the system to read bytes that are about to be used.
    pub(crate) fn will_need(&self, range: std::ops::Range<usize>) {
        let at = self.place.offset as usize;
        hint(&self.file.map, Hint::WillNeed, at + range.start..at + range.end);
    }
}
