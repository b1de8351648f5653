//! Reads a text file as blocks of whole lines, decompressed on the way.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use burn_gnn_files::DataError;
use rayon::prelude::*;

use super::decompress::{text, text_of};
use super::source::Piece;
use crate::files::{Progress, io_error, open, text_error};

/// Bytes of a block: it takes a core some milliseconds and fits in its cache.
pub(super) const BLOCK: usize = 1 << 20;

/// Blocks of whole lines; the last line may lack its end.
pub(crate) struct Blocks<'a> {
    path: &'a Path,
    reader: Box<dyn Read + Send>,
    /// Bytes after the last block.
    rest: Vec<u8>,
    size: usize,
    ended: bool,
}

impl<'a> Blocks<'a> {
    /// Opens a file and reads its first line, without its end; `None` for an empty file.
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

    /// Opens a file without a header.
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

/// Appends up to `want` bytes to a block, fewer only at the end of the text, and returns their number.
///
/// `read_to_end` starts with small reads, each through the buffer of the file, and grows the block by copying it.
pub(super) fn read_more(
    reader: &mut impl Read,
    block: &mut Vec<u8>,
    want: usize,
) -> std::io::Result<usize> {
    /// Bytes of the first read: a short file takes no more memory.
    const FIRST: usize = 1 << 16;
    let before = block.len();
    let (mut filled, end) = (before, before + want);
    while filled < end {
        if filled == block.len() {
            let next = if filled < before + FIRST { end.min(before + FIRST) } else { end };
            block.resize(next, 0);
        }
        match reader.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => {
                block.truncate(filled);
                return Err(e);
            }
        }
    }
    block.truncate(filled);
    Ok(filled - before)
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

/// Parses blocks and returns the results in order. Blocks are read sequentially and parsed in parallel.
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
            // A line longer than the block is read until its end.
            let before = block.len();
            let want = if before < self.size { self.size - before } else { before };
            match read_more(&mut self.reader, &mut block, want) {
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

/// Number of lines that end before byte `end` of a plain file, for messages about rows of a shard.
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
