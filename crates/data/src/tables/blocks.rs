//! Reads a text file as blocks of whole lines, decompressed on the way.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burn_gnn_files::DataError;
use rayon::prelude::*;

use super::source::Piece;
use crate::files::decompression_limit::{FREE, MAX_EXPANSION, expansion_limit};
use crate::files::{
    CountingReader, MARK, Progress, format_error, io_error, open, reading_file, text_error,
};

/// Bytes of a block: long enough that one block keeps a core busy for milliseconds, short enough to stay in its cache.
pub(super) const BLOCK: usize = 1 << 20;

/// Logarithms of the bytes that a zstd frame may ask the decoder to keep at once: what any file may, and what the
/// longest may.
#[cfg(feature = "zstd")]
const WINDOW: [u32; 2] = [24, 27];

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
}

/// By the first bytes, which no text in UTF-8 has.
pub(crate) fn compressed(
    path: &Path,
    file: &mut BufReader<File>,
) -> Result<Option<Compression>, DataError> {
    let start = file.fill_buf().map_err(|e| io_error(path, e))?;
    Ok(if start.starts_with(b"\x1f\x8b") {
        Some(Compression::Gzip)
    } else if start.starts_with(b"\x28\xb5\x2f\xfd") {
        Some(Compression::Zstd)
    } else {
        None
    })
}

/// By the first bytes, which no table of text begins with: a header has a colon or the name of a column.
pub(crate) fn is_parquet(path: &Path) -> Result<bool, DataError> {
    let mut start = [0; 4];
    match open(path)?.0.read_exact(&mut start) {
        Ok(()) => Ok(&start == b"PAR1"),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(io_error(path, e)),
    }
}

/// A decompressor that is stopped as soon as it has given too much for what it has taken, not only when the whole file
/// would.
struct Bounded<R> {
    inner: R,
    taken: Arc<AtomicU64>,
    given: u64,
    max_expansion: u32,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.given += n as u64;
        let taken = self.taken.load(Ordering::Relaxed);
        if self.given > expansion_limit(taken, self.max_expansion) {
            let (given, most) = (self.given, self.max_expansion);
            return Err(std::io::Error::other(format!(
                "expands to more than {FREE} bytes and {most} for each compressed one ({given} bytes out of {taken}); raise `max_expansion` or \
                 decompress it first"
            )));
        }
        Ok(n)
    }
}

/// The text of a file, decompressed; expanded at most to `max_expansion` times its length (and 16 MiB).
pub(crate) fn text(
    path: &Path,
    max_expansion: u32,
    bar: &Progress,
) -> Result<Box<dyn Read + Send>, DataError> {
    let opened = open(path)?;
    let mut file = BufReader::with_capacity(1 << 17, opened.0);
    let compression = compressed(path, &mut file)?;
    let file = bar.read(file);
    let taken = Arc::<AtomicU64>::default();
    let counted = |file| {
        let taken = taken.clone();
        let count = move |bytes| {
            taken.fetch_add(bytes, Ordering::Relaxed);
        };
        CountingReader { inner: BufReader::new(file), count }
    };
    let text: Box<dyn Read + Send> = match compression {
        None => Box::new(file),
        Some(Compression::Gzip) => {
            let inner = flate2::bufread::MultiGzDecoder::new(counted(file));
            Box::new(Bounded { inner, taken, given: 0, max_expansion })
        }
        #[cfg(not(feature = "zstd"))]
        Some(Compression::Zstd) => {
            return Err(crate::files::missing_feature(path.display(), "zstd"));
        }
        #[cfg(feature = "zstd")]
        Some(Compression::Zstd) => {
            let mut inner = zstd::stream::read::Decoder::with_buffer(counted(file))
                .map_err(|e| io_error(path, e))?;
            let window =
                expansion_limit(opened.1, max_expansion).ilog2().clamp(WINDOW[0], WINDOW[1]);
            inner.window_log_max(window).map_err(|e| io_error(path, e))?;
            Box::new(Bounded { inner, taken, given: 0, max_expansion })
        }
    };
    without_mark(path, text)
}

/// The text behind a byte order mark of UTF-8, which no reader takes for a part of the first field; text in UTF-16 is an
/// error.
fn without_mark(
    path: &Path,
    mut text: Box<dyn Read + Send>,
) -> Result<Box<dyn Read + Send>, DataError> {
    let mut start = vec![];
    text.by_ref().take(3).read_to_end(&mut start).map_err(|e| text_error(path, e))?;
    if start == MARK {
        return Ok(text);
    }
    if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        let why = "expected UTF-8, found the byte order mark of UTF-16; convert the file (`iconv -f UTF-16 -t UTF-8`)";
        return Err(format_error(path, why));
    }
    Ok(Box::new(std::io::Cursor::new(start).chain(text)))
}

/// [`text`] of a reader without options.
pub(crate) fn text_of(path: &Path, progress: bool) -> Result<Box<dyn Read + Send>, DataError> {
    text(path, MAX_EXPANSION, &reading_file(progress, path))
}

/// Blocks of whole lines; the last line may lack its end.
pub(crate) struct Blocks<'a> {
    path: &'a Path,
    reader: Box<dyn Read + Send>,
    /// Bytes that were read and not given out.
    rest: Vec<u8>,
    size: usize,
    ended: bool,
}

impl<'a> Blocks<'a> {
    /// Opens the file and takes its first line off, without its end; `None` for an empty file.
    pub(crate) fn open(
        piece: &'a Piece,
        max_expansion: u32,
        bar: &Progress,
    ) -> Result<(Self, Option<Vec<u8>>), DataError> {
        let path = &piece.path;
        let reader = match piece.built_in {
            Some(bytes) => Box::new(bytes),
            None => text(path, max_expansion, bar)?,
        };
        let mut blocks = Self::new(path, reader);
        let header = blocks.first_line()?;
        if let Some(range) = &piece.range {
            let mut file = open(path)?.0;
            file.seek(SeekFrom::Start(range.start)).map_err(|e| io_error(path, e))?;
            let reader = Box::new(bar.read(file.take(range.end - range.start)));
            blocks = Self::new(path, reader);
        }
        Ok((blocks, header))
    }

    /// All of a file, without a header.
    pub(crate) fn whole(path: &'a Path, progress: bool) -> Result<Self, DataError> {
        Ok(Self::new(path, text_of(path, progress)?))
    }
    fn new(path: &'a Path, reader: Box<dyn Read + Send>) -> Self {
        Self { path, reader, rest: vec![], size: BLOCK, ended: false }
    }
    fn first_line(&mut self) -> Result<Option<Vec<u8>>, DataError> {
        self.size = 1 << 16;
        let first = self.next().transpose()?;
        self.size = BLOCK;
        let Some(mut line) = first else { return Ok(None) };
        let end = memchr::memchr(b'\n', &line).map_or(line.len(), |i| i + 1);
        let mut rest = line.split_off(end);
        rest.append(&mut self.rest);
        self.rest = rest;
        Ok(Some(trim_end(&line).to_vec()))
    }
}

/// The lines of a block, without their ends.
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        (!line.is_empty()).then(|| trim_end(line))
    })
}

/// What `parse` makes of blocks, in their order. They are read one after the other and parsed at the same time.
pub(crate) fn parse_blocks<B: Send, T: Send>(
    blocks: impl Iterator<Item = B> + Send,
    parse: impl Fn(usize, B) -> Result<T, DataError> + Sync + Send,
) -> Result<Vec<T>, DataError> {
    let parsed = blocks.enumerate().par_bridge().map(|(i, block)| Ok((i, parse(i, block)?)));
    let mut parsed = parsed.collect::<Result<Vec<(usize, T)>, DataError>>()?;
    parsed.sort_unstable_by_key(|p| p.0);
    Ok(parsed.into_iter().map(|p| p.1).collect())
}

/// A line without `\n` or `\r\n`.
fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl Iterator for Blocks<'_> {
    type Item = Result<Vec<u8>, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut block = std::mem::take(&mut self.rest);
        let mut searched = 0;
        while !self.ended {
            // A line longer than the block: go on until it ends.
            let before = block.len();
            let want = if before < self.size { self.size - before } else { before };
            let read = self.reader.by_ref().take(want as u64).read_to_end(&mut block);
            match read {
                Err(e) => {
                    self.ended = true;
                    return Some(Err(text_error(self.path, e)));
                }
                Ok(n) => self.ended = n < want,
            }
            if self.ended {
                break;
            }
            if let Some(i) = memchr::memrchr(b'\n', &block[searched..]) {
                self.rest = block.split_off(searched + i + 1);
                break;
            }
            searched = block.len();
        }
        (!block.is_empty()).then_some(Ok(block))
    }
}

/// Number of lines that end before byte `end` of a plain file: what stands before a range, for messages.
pub(crate) fn lines_before(path: &Path, end: u64) -> u64 {
    let Ok((file, _)) = open(path) else { return 0 };
    let (mut reader, mut lines) = (BufReader::with_capacity(BLOCK, file).take(end), 0);
    while let Ok(buffer) = reader.fill_buf() {
        if buffer.is_empty() {
            break;
        }
        lines += memchr::memchr_iter(b'\n', buffer).count() as u64;
        let used = buffer.len();
        reader.consume(used);
    }
    lines
}
