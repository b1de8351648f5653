//! Validates page headers of a Parquet column before decompression.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use burn_gnn_files::DataError;
use parquet::file::metadata::ColumnChunkMetaData;

use crate::files::{format_error, io_error, open};

/// Uncompressed bytes that any page may have: writers aim at pages of a mebibyte.
const FREE: u64 = (1 << 20) + (1 << 16);
/// Most levels of nested structures in a page header.
const DEPTH: u32 = 8;

/// Validates a column chunk: it must be inside its file, each page may take at most [`FREE`] bytes or `max_expansion`
/// times its compressed size, and pages may not declare more values than the chunk has, since decoders allocate memory for
/// the declared number.
pub(super) fn check(
    path: &Path,
    len: u64,
    chunk: &ColumnChunkMetaData,
    max_expansion: u32,
) -> Result<(), DataError> {
    let name = chunk.column_path().string();
    let refuse = |why: String| format_error(path, format!("column `{name}`: {why}"));
    let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
    let size = chunk.compressed_size();
    let (Ok(from), Ok(size)) = (u64::try_from(start), u64::try_from(size)) else {
        return Err(refuse(format!(
            "expected a place in the file, found {size} bytes from byte {start}"
        )));
    };
    if chunk.data_page_offset() < start || from.checked_add(size).is_none_or(|end| end > len) {
        return Err(refuse(format!(
            "expected pages inside the {len} bytes of the file, found {size} bytes from byte {from}"
        )));
    }
    let mut file = BufReader::new(open(path)?.0);
    file.seek(SeekFrom::Start(from)).map_err(|e| io_error(path, e))?;
    let (mut left, mut values) = (size, u64::try_from(chunk.num_values()).unwrap_or(0));
    while left > 0 {
        let mut skim = CompactProtocol { file: (&mut file).take(left) };
        let page = skim.page().map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof => {
                refuse(format!("expected the header of a page: {e}"))
            }
            _ => io_error(path, e),
        })?;
        let [uncompressed, compressed] = page.sizes.map(|s| u64::try_from(s).unwrap_or(u64::MAX));
        left = skim.file.limit();
        if compressed > left {
            return Err(refuse(format!(
                "expected a page of at most {left} bytes, found {compressed}"
            )));
        }
        if uncompressed > FREE.max(compressed.saturating_mul(u64::from(max_expansion))) {
            return Err(refuse(format!(
                "{compressed} bytes expand to {uncompressed}; raise `max_expansion`"
            )));
        }
        // A value of a dictionary takes at least a byte. The values of the other pages are the values of the chunk.
        let most = if page.is_dictionary { uncompressed } else { values };
        let Some(rest) = u64::try_from(page.values).ok().and_then(|n| most.checked_sub(n)) else {
            return Err(refuse(format!(
                "expected a page of at most {most} values, found {}",
                page.values
            )));
        };
        if !page.is_dictionary {
            values = rest;
        }
        // The header stores sizes in 32 bits.
        file.seek_relative(compressed as i64).map_err(|e| io_error(path, e))?;
        left -= compressed;
    }
    Ok(())
}

/// The header of a page.
struct Page {
    /// Bytes before and after compression.
    sizes: [i64; 2],
    is_dictionary: bool,
    values: i64,
}

/// A parser of Thrift's compact protocol that reads the sizes in a page header and skips other fields.
struct CompactProtocol<R> {
    file: R,
}

fn invalid(why: &'static str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, why)
}

impl<R: BufRead> CompactProtocol<R> {
    fn page(&mut self) -> std::io::Result<Page> {
        let (mut page, mut id) = (Page { sizes: [-1; 2], is_dictionary: false, values: 0 }, 0);
        while let Some((kind, next)) = self.field(id)? {
            id = next;
            match (id, kind) {
                (2 | 3, 5) => page.sizes[id as usize - 2] = self.zigzag()?,
                // Headers of data pages of both versions, and of dictionary pages.
                (5 | 7 | 8, 12) => {
                    page.is_dictionary |= id == 7;
                    page.values = page.values.max(self.values()?);
                }
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Ok(page)
    }
    /// Reads the first field of a structure, a number, and skips the others.
    fn values(&mut self) -> std::io::Result<i64> {
        let (mut values, mut id) = (0, 0);
        while let Some((kind, next)) = self.field(id)? {
            id = next;
            match (id, kind) {
                (1, 5) => values = self.zigzag()?,
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Ok(values)
    }
    /// Kind and number of the next field of a structure.
    fn field(&mut self, before: i64) -> std::io::Result<Option<(u8, i64)>> {
        let head = self.byte()?;
        Ok(match (head >> 4, head & 15) {
            (_, 0) => None,
            (0, kind) => Some((kind, self.zigzag()?)),
            (delta, kind) => Some((kind, before.wrapping_add(i64::from(delta)))),
        })
    }
    fn byte(&mut self) -> std::io::Result<u8> {
        let mut byte = [0];
        self.file.read_exact(&mut byte)?;
        Ok(byte[0])
    }
    fn varint(&mut self) -> std::io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value);
            }
        }
        Err(invalid("a number of more than 64 bits"))
    }
    fn zigzag(&mut self) -> std::io::Result<i64> {
        let v = self.varint()?;
        Ok((v >> 1).cast_signed() ^ -(v & 1).cast_signed())
    }
    fn pass(&mut self, bytes: u64) -> std::io::Result<()> {
        let passed = std::io::copy(&mut (&mut self.file).take(bytes), &mut std::io::sink())?;
        if passed == bytes { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }
    fn skip(&mut self, kind: u8, depth: u32) -> std::io::Result<()> {
        let Some(deeper) = depth.checked_sub(1) else { return Err(invalid("structures too deep")) };
        match kind {
            // The type of the field contains the value of a boolean.
            1 | 2 => Ok(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(drop),
            7 => self.pass(8),
            8 => {
                let bytes = self.varint()?;
                self.pass(bytes)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                // Booleans in a list take a byte each.
                let kind = if matches!(head & 15, 1 | 2) { 3 } else { head & 15 };
                (0..count).try_for_each(|_| self.skip(kind, deeper))
            }
            12 => {
                let mut id = 0;
                while let Some((kind, next)) = self.field(id)? {
                    id = next;
                    self.skip(kind, deeper)?;
                }
                Ok(())
            }
            _ => Err(invalid("a field of unknown kind")),
        }
    }
}
