//! Writes the sections of a file side by side, each from its beginning to its end or by position.

use std::fs::File;
use std::path::{Path, PathBuf};

use burn_gnn_files::AtomicFile;
use burn_gnn_files::internal::open_with;
use twox_hash::XxHash3_64;

use crate::error::{StoreError, io};
use crate::sections::{BLOCK, Header, PAGE};

/// Bytes that are written at a time, in whole blocks.
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

/// A file that is empty, to write and to read what was written.
pub(crate) fn create(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    Ok(open_with(path, options.read(true).write(true).create(true).truncate(true))?.0)
}

/// A file that [`create`] made, with what is in it.
pub(crate) fn reopen(path: &Path) -> Result<File, StoreError> {
    Ok(open_with(path, File::options().read(true).write(true))?.0)
}

/// One section that is being written.
#[derive(Debug)]
struct Part {
    /// Where it begins.
    offset: u64,
    /// Bytes that were given, or where those that were put by position end.
    len: u64,
    /// The last of them, from a block's beginning on.
    buffer: Vec<u8>,
    checks: Vec<u64>,
    /// Whether nothing lies in the file behind `len`, so that pages of zeros need no write.
    fresh: bool,
    /// Whether bytes were put by position, and are hashed at the end.
    by_position: bool,
}

impl Part {
    /// Hashes the first `len` bytes, which are in the file.
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

    /// Hashes and writes the whole blocks of the buffer; all of it if `all`. Pages of zeros stay holes of a fresh file.
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
        // What was written of a block that is not whole stays, to be hashed with the rest of it.
        self.buffer.drain(..hashed);
        Ok(())
    }
}

/// Writes a file of sections under a temporary name, then gives it its own.
pub(crate) fn replace(
    path: &Path,
    header: Header,
    put: impl FnOnce(&mut SectionWriter) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut out = SectionWriter::replace(path, header)?;
    put(&mut out)?;
    out.finish(&[]).map(drop)
}

/// What is written to.
#[derive(Debug)]
enum Target {
    /// A file of a build, which names it when it is whole.
    Plain(File),
    /// A file that gets its name when it is whole, and is removed if it never is.
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

/// A file that is being written, section by section or all of them at once.
#[derive(Debug)]
pub(crate) struct SectionWriter {
    path: PathBuf,
    target: Target,
    header: Header,
    parts: Vec<Part>,
}

impl SectionWriter {
    /// Writes to `path`, of which everything is new. Sections have at most the bytes that `header` says.
    pub(crate) fn create(path: &Path, header: Header) -> Result<Self, StoreError> {
        Ok(Self::new(path, Target::Plain(create(path)?), header))
    }

    /// Writes a file that takes the place of `path` when it is [finished](Self::finish).
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

    /// Goes on where sections have the lengths `lens`, which were [synced](Self::sync). Reads what is there for its
    /// checksums.
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
            "more than was announced"
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

    /// Writes to section number `section`, `at` bytes behind its beginning, where nothing was put; such a section is
    /// not appended to, and read back for its checksums at the end.
    pub(crate) fn put_at(
        &mut self,
        section: usize,
        at: u64,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let (part, end) = (&mut self.parts[section], at + bytes.len() as u64);
        debug_assert!(end <= self.header.sections[section].bytes, "more than was announced");
        debug_assert!(
            part.by_position || part.len == 0,
            "a section is appended to or written by position"
        );
        write_at(self.target.file(), bytes, part.offset + at).map_err(io(&self.path))?;
        (part.len, part.by_position) = (part.len.max(end), true);
        Ok(())
    }

    /// Forces to disk what was put; the lengths of the sections, to [resume](Self::resume) from.
    pub(crate) fn sync(&mut self) -> Result<Vec<u64>, StoreError> {
        for part in &mut self.parts {
            part.write(self.target.file(), true).map_err(io(&self.path))?;
        }
        // A hole at the end is no byte of the file yet.
        let end = self.parts.iter().map(|p| p.offset + p.len).max().unwrap_or(0);
        let file = self.target.file();
        if file.metadata().map_err(io(&self.path))?.len() < end {
            file.set_len(end).map_err(io(&self.path))?;
        }
        file.sync_data().map_err(io(&self.path))?;
        Ok(self.parts.iter().map(|p| p.len).collect())
    }

    /// Writes checksums and the header, to which `facts` were added, and forces all to disk. A file that was to
    /// [replace](Self::replace) another has its name then.
    pub(crate) fn finish(mut self, facts: &[(&str, serde_json::Value)]) -> Result<u64, StoreError> {
        for (part, place) in self.parts.iter_mut().zip(&mut self.header.sections) {
            if part.by_position {
                part.read_back(self.target.file(), part.len).map_err(io(&self.path))?;
            }
            part.write(self.target.file(), true).map_err(io(&self.path))?;
            if !part.buffer.is_empty() {
                part.checks.push(XxHash3_64::oneshot(&part.buffer));
            }
            place.bytes = part.len;
        }
        // Checksums stand behind what there is, which may be less than was announced.
        self.header.bytes = self
            .header
            .sections
            .iter()
            .map(|p| p.offset + p.bytes.next_multiple_of(PAGE))
            .max()
            .unwrap_or(PAGE);
        self.header.facts.extend(facts.iter().map(|(k, v)| ((*k).to_owned(), v.clone())));
        self.header.place_checks();
        for (part, place) in self.parts.iter().zip(&self.header.sections) {
            write_at(self.target.file(), bytemuck::cast_slice(&part.checks), place.checks)
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
