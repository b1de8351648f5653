//! Writes section files. Several sections are written at a time, each sequentially or by position.

use std::fs::File;
use std::path::{Path, PathBuf};

use burn_gnn_files::AtomicFile;
use burn_gnn_files::internal::open_with;
use twox_hash::XxHash3_64;

use crate::error::{StoreError, io};
use crate::sections::{BLOCK, Header, PAGE};

/// Bytes per write, a multiple of blocks.
const BUFFER: usize = 16 * BLOCK;

#[cfg(unix)]
pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let n = std::os::windows::fs::FileExt::seek_write(file, bytes, at)?;
        (bytes, at) = (&bytes[n..], at + n as u64);
    }
    Ok(())
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, at)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => (bytes, at) = (&mut bytes[n..], at + n as u64),
        }
    }
    Ok(())
}

/// Creates an empty file that can be written and read.
pub(crate) fn create(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    Ok(open_with(path, options.read(true).write(true).create(true).truncate(true))?.0)
}

/// Opens a file of [`create`] again, with its content.
pub(crate) fn reopen(path: &Path) -> Result<File, StoreError> {
    Ok(open_with(path, File::options().read(true).write(true))?.0)
}

/// A section in progress.
#[derive(Debug)]
struct Part {
    /// Byte of the section's start.
    offset: u64,
    /// Number of appended bytes, or the end of the bytes that were written by position.
    len: u64,
    /// The last bytes, from the start of a block on.
    buffer: Vec<u8>,
    checks: Vec<u64>,
    /// Whether the file has no data after `len`, so that pages of zeros need not be written.
    fresh: bool,
    /// Whether bytes are written by position, and are hashed at the end.
    by_position: bool,
}

impl Part {
    /// Hashes the first `len` bytes, which are already in the file.
    fn read_back(&mut self, file: &File, len: u64) -> std::io::Result<()> {
        let mut bytes = vec![0; BLOCK];
        for at in (0..len).step_by(BLOCK) {
            let n = (len - at).min(BLOCK as u64) as usize;
            read_at(file, &mut bytes[..n], self.offset + at)?;
            if n == BLOCK {
                self.checks.push(XxHash3_64::oneshot(&bytes));
            } else {
                self.buffer.extend_from_slice(&bytes[..n]);
            }
        }
        (self.len, self.fresh) = (len, false);
        Ok(())
    }

    /// Hashes and writes the complete blocks of the buffer, or all of it if `all` is set. In a new file, pages of zeros
    /// stay holes.
    fn write(&mut self, file: &File, all: bool) -> std::io::Result<()> {
        let whole = if all { self.buffer.len() } else { self.buffer.len() / BLOCK * BLOCK };
        let at = self.offset + self.len - self.buffer.len() as u64;
        let (mut from, mut next) = (0, 0);
        while next < whole {
            let to = whole.min(next + PAGE as usize);
            if self.fresh && self.buffer[next..to].iter().all(|&b| b == 0) {
                write_at(file, &self.buffer[from..next], at + from as u64)?;
                from = to;
            }
            next = to;
        }
        write_at(file, &self.buffer[from..whole], at + from as u64)?;
        let hashed = self.buffer.len() / BLOCK * BLOCK;
        self.checks.extend(self.buffer[..hashed].chunks_exact(BLOCK).map(XxHash3_64::oneshot));
        // The bytes of an incomplete block stay in the buffer, because they are hashed with the rest of the block.
        self.buffer.drain(..hashed);
        Ok(())
    }
}

/// Writes a section file under a temporary name, then renames it.
pub(crate) fn replace(
    path: &Path,
    header: Header,
    put: impl FnOnce(&mut SectionWriter) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut out = SectionWriter::replace(path, header)?;
    put(&mut out)?;
    out.finish(&[]).map(drop)
}

/// The file being written.
#[derive(Debug)]
enum Target {
    /// A file of a build, which renames it when it is complete.
    Plain(File),
    /// A temporary file that is renamed when it is complete, and removed otherwise.
    Atomic(AtomicFile),
}

impl Target {
    fn file(&self) -> &File {
        match self {
            Self::Plain(file) => file,
            Self::Atomic(file) => file.by_position(),
        }
    }
}

/// Writes a section file. Sections can be written in any order.
#[derive(Debug)]
pub(crate) struct SectionWriter {
    path: PathBuf,
    target: Target,
    header: Header,
    parts: Vec<Part>,
}

impl SectionWriter {
    /// Creates the file `path`. Sections have at most the bytes that `header` declares.
    pub(crate) fn create(path: &Path, header: Header) -> Result<Self, StoreError> {
        Ok(Self::new(path, Target::Plain(create(path)?), header))
    }

    /// Creates a file that replaces `path` when it is [finished](Self::finish).
    pub(crate) fn replace(path: &Path, header: Header) -> Result<Self, StoreError> {
        Ok(Self::new(path, Target::Atomic(AtomicFile::create(path).map_err(io(path))?), header))
    }

    fn new(path: &Path, target: Target, header: Header) -> Self {
        let part = |offset| Part {
            offset,
            len: 0,
            buffer: Vec::with_capacity(BUFFER + BLOCK),
            checks: vec![],
            fresh: true,
            by_position: false,
        };
        let parts = header.sections.iter().map(|p| part(p.offset)).collect();
        Self { path: path.into(), target, header, parts }
    }

    /// Resumes a file whose sections have the lengths `lens`, which were [synced](Self::sync). Reads the existing bytes
    /// to compute their checksums.
    pub(crate) fn resume(path: &Path, header: Header, lens: &[u64]) -> Result<Self, StoreError> {
        let file = reopen(path)?;
        let mut writer = Self::new(path, Target::Plain(file), header);
        for (part, &len) in writer.parts.iter_mut().zip(lens) {
            part.read_back(writer.target.file(), len).map_err(io(path))?;
        }
        Ok(writer)
    }

    /// Appends to section number `section`.
    pub(crate) fn put(&mut self, section: usize, mut bytes: &[u8]) -> Result<(), StoreError> {
        let part = &mut self.parts[section];
        debug_assert!(
            part.len + bytes.len() as u64 <= self.header.sections[section].bytes,
            "more bytes than the header declares"
        );
        debug_assert!(!part.by_position, "a section is appended to or written by position");
        while !bytes.is_empty() {
            let n = bytes.len().min(BUFFER - part.buffer.len());
            part.buffer.extend_from_slice(&bytes[..n]);
            part.len += n as u64;
            bytes = &bytes[n..];
            if part.buffer.len() == BUFFER {
                part.write(self.target.file(), false).map_err(io(&self.path))?;
            }
        }
        Ok(())
    }

    /// Writes bytes at offset `at` of section number `section`, where nothing was written before. Such a section cannot
    /// be appended to. It is read back at the end for its checksums.
    pub(crate) fn put_at(
        &mut self,
        section: usize,
        at: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let (part, end) = (&mut self.parts[section], at + bytes.len() as u64);
        debug_assert!(
            end <= self.header.sections[section].bytes,
            "more bytes than the header declares"
        );
        debug_assert!(
            part.by_position || part.len == 0,
            "a section is appended to or written by position"
        );
        write_at(self.target.file(), bytes, part.offset + at).map_err(io(&self.path))?;
        (part.len, part.by_position) = (part.len.max(end), true);
        Ok(())
    }

    /// Forces written bytes to disk, and returns the lengths of the sections, from which [`resume`](Self::resume)
    /// starts.
    pub(crate) fn sync(&mut self) -> Result<Vec<u64>, StoreError> {
        for part in &mut self.parts {
            part.write(self.target.file(), true).map_err(io(&self.path))?;
        }
        // A hole at the end does not count for the length of the file.
        let end = self.parts.iter().map(|p| p.offset + p.len).max().unwrap_or(0);
        let file = self.target.file();
        if file.metadata().map_err(io(&self.path))?.len() < end {
            file.set_len(end).map_err(io(&self.path))?;
        }
        file.sync_data().map_err(io(&self.path))?;
        Ok(self.parts.iter().map(|p| p.len).collect())
    }

    /// Writes checksums and the header with additional `facts`, forces the file to disk, and renames a file of
    /// [`replace`](Self::replace). Returns the length of the file.
    pub(crate) fn finish(mut self, facts: &[(&str, serde_json::Value)]) -> Result<u64, StoreError> {
        for (part, entry) in self.parts.iter_mut().zip(&mut self.header.sections) {
            if part.by_position {
                part.read_back(self.target.file(), part.len).map_err(io(&self.path))?;
            }
            part.write(self.target.file(), true).map_err(io(&self.path))?;
            if !part.buffer.is_empty() {
                part.checks.push(XxHash3_64::oneshot(&part.buffer));
            }
            entry.bytes = part.len;
        }
        // Checksums follow the actual sections, which may be shorter than declared.
        self.header.bytes = self
            .header
            .sections
            .iter()
            .map(|p| p.offset + p.bytes.next_multiple_of(PAGE))
            .max()
            .unwrap_or(PAGE);
        self.header.facts.extend(facts.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
        self.header.place_checks();
        for (part, entry) in self.parts.iter().zip(&self.header.sections) {
            write_at(self.target.file(), bytemuck::cast_slice(&part.checks), entry.checks)
                .map_err(io(&self.path))?;
        }
        let page = self.header.page(&self.path)?;
        self.target.file().set_len(self.header.bytes).map_err(io(&self.path))?;
        write_at(self.target.file(), &page, 0).map_err(io(&self.path))?;
        match self.target {
            Target::Plain(file) => file.sync_all(),
            Target::Atomic(file) => file.commit(),
        }
        .map_err(io(&self.path))?;
        Ok(self.header.bytes)
    }
}
