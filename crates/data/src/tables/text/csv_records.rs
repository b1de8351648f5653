//! Reads CSV text in blocks of whole records.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;

use super::blocks::{BLOCK, read_more};
use super::dialect::{BadQuote, Dialect, Records, line_ends};
use crate::files::{Expected, table_error, text_error};

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Blocks of whole records. The first has no byte order mark. The last may end without a line end. A block with invalid
/// quotes is the last one.
pub(crate) struct RecordBlocks {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    pub(crate) dialect: Dialect,
    /// Bytes after the last block.
    rest: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl RecordBlocks {
    pub(crate) fn new(path: &Path, dialect: Dialect, reader: Box<dyn Read + Send>) -> Self {
        Self { path: path.into(), reader, dialect, rest: vec![], begun: false, ended: false }
    }
}

impl Iterator for RecordBlocks {
    type Item = Result<Vec<u8>, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut block = std::mem::take(&mut self.rest);
        while !self.ended {
            // A record longer than the block is read until its end.
            let before = block.len();
            let want = if before < BLOCK { BLOCK - before } else { before };
            match read_more(&mut self.reader, &mut block, want) {
                Err(e) => {
                    self.ended = true;
                    return Some(Err(text_error(&self.path, e)));
                }
                Ok(n) => self.ended = n < want,
            }
            if !self.begun {
                self.begun = true;
                if block.starts_with(MARK) {
                    block.drain(..MARK.len());
                }
            }
            if self.ended {
                break;
            }
            match self.dialect.whole_records(&block) {
                Ok(0) => {}
                Ok(end) => {
                    self.rest = block.split_off(end);
                    break;
                }
                Err(()) => self.ended = true,
            }
        }
        (!block.is_empty()).then_some(Ok(block))
    }
}

/// Skips the first lines of a text.
pub(crate) fn behind_lines(
    path: &Path,
    text: Box<dyn Read + Send>,
    lines: u64,
) -> Result<Box<dyn Read + Send>, DataError> {
    let (mut text, mut left) = (BufReader::new(text), lines);
    let mut after_return = false;
    while left > 0 || after_return {
        let buffer = text.fill_buf().map_err(|e| text_error(path, e))?;
        let Some(&first) = buffer.first() else { break };
        if std::mem::take(&mut after_return) {
            text.consume(usize::from(first == b'\n'));
            continue;
        }
        let end = memchr::memchr2(b'\n', b'\r', buffer);
        let used = end.map_or(buffer.len(), |i| i + 1);
        if let Some(i) = end {
            left -= 1;
            after_return = buffer[i] == b'\r';
        }
        text.consume(used);
    }
    Ok(Box::new(text))
}

/// The expected value for an invalid quote.
pub(crate) fn quote_error(bad: BadQuote) -> Expected {
    let (what, remedy) = if bad.closed {
        (
            "a delimiter or a line end after the closing quote of the field",
            "write quotes inside of a field twice; `Csv::with_escape('\\\\')` reads `\\\"`, `Csv::without_quotes` takes quotes as \
             text",
        )
    } else {
        (
            "a closing quote for the field that begins here",
            "`Csv::without_quotes` takes quotes as text; `Csv::with_escape('\\\\')` reads `\\\"`",
        )
    };
    Expected::from(what).or(remedy)
}

/// A record without its line end.
pub(crate) fn line_of(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// Most fields of a row in an error, which is truncated later.
const MOST: usize = 100;

/// Joins the first fields of a row for an error.
pub(crate) fn joined<'a>(fields: impl Iterator<Item = &'a [u8]>, between: &str) -> String {
    fields.take(MOST).map(String::from_utf8_lossy).collect::<Vec<_>>().join(between)
}

/// The fields of a record.
#[derive(Default)]
pub(crate) struct Record {
    bytes: Vec<u8>,
    /// Where each field ends.
    ends: Vec<usize>,
}

impl Record {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
    pub(crate) fn get(&self, i: usize) -> Option<&[u8]> {
        let end = *self.ends.get(i)?;
        Some(&self.bytes[i.checked_sub(1).map_or(0, |before| self.ends[before])..end])
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|i| self.get(i).unwrap_or_default())
    }
}

/// A CSV file, read record by record; the header is read on construction.
pub(crate) struct CsvFile {
    blocks: RecordBlocks,
    block: Vec<u8>,
    /// Position of the next record in the block.
    at: usize,
    /// Line ends before byte `counted` of the block.
    lines: u64,
    counted: usize,
    /// The names of the columns.
    pub(crate) head: Record,
    /// Line of the names.
    pub(crate) head_line: u64,
    record: Record,
}

impl CsvFile {
    pub(crate) fn new(
        path: &Path,
        delimiter: u8,
        text: Box<dyn Read + Send>,
    ) -> Result<Self, DataError> {
        let mut file = Self {
            blocks: RecordBlocks::new(path, Dialect::plain(delimiter), text),
            block: vec![],
            at: 0,
            lines: 0,
            counted: 0,
            head: Record::default(),
            head_line: 1,
            record: Record::default(),
        };
        let first = file.next(path)?.map(|(_, line)| line);
        if let Some(line) = first {
            file.head = std::mem::take(&mut file.record);
            file.head_line = line;
        }
        Ok(file)
    }

    /// The line of byte `at` of the block; `at` does not fall from call to call.
    fn line(&mut self, at: usize) -> u64 {
        self.lines += line_ends(&self.block[self.counted..at]);
        self.counted = at;
        self.lines + 1
    }

    /// The next record, and the line that it begins in.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<(&Record, u64)>, DataError> {
        let start = loop {
            let dialect = &self.blocks.dialect;
            let mut records = Records { text: &self.block, at: self.at, dialect };
            if let Some(start) = records.start() {
                break start;
            }
            self.line(self.block.len());
            let Some(block) = self.blocks.next().transpose()? else {
                (self.block, self.at, self.counted) = (vec![], 0, 0);
                return Ok(None);
            };
            (self.block, self.at, self.counted) = (block, 0, 0);
        };
        let line = self.line(start);
        let Record { bytes, ends } = &mut self.record;
        bytes.clear();
        ends.clear();
        let mut records = Records { text: &self.block, at: start, dialect: &self.blocks.dialect };
        loop {
            match records.field() {
                Ok((field, last)) => {
                    records.unescape(field, bytes);
                    ends.push(bytes.len());
                    if last {
                        break;
                    }
                }
                Err(bad) => {
                    let column = ends.len() + 1;
                    let line = self.line(bad.from);
                    let expected = quote_error(bad).or("write quotes inside of a field twice");
                    return Err(table_error(path, line, column, expected, bad.found(&self.block)));
                }
            }
        }
        self.at = records.at;
        Ok(Some((&self.record, line)))
    }
}
