//! Parses the banner and the line of sizes.

use std::path::Path;

use burn_gnn_files::DataError;

use crate::files::{LIMIT, cut, format_error, table_error};
use crate::tables::text::blocks::{Blocks, lines};
use crate::tables::text::format::{Format, explained};
use crate::tables::text::parse_number::parse_i64;

/// The start of the banner, for errors.
const BANNER: &str = "`%%MatrixMarket matrix coordinate`";

/// Symmetry of the matrix, declared in the banner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    /// Entries `(i, j)` and `(j, i)` are equal, and one of them is stored.
    Symmetric,
    /// Entry `(j, i)` is the negated entry `(i, j)`, and one of them is stored.
    Skew,
}

/// The content of the lines before the entries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Number of these lines.
    pub(super) lines: u64,
    /// Whether entries have a value.
    pub(super) valued: bool,
    pub(super) symmetry: Symmetry,
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) entries: u64,
}

/// Reads lines up to the line of sizes. Returns the rest of its block, too.
pub(super) fn read_header(
    path: &Path,
    blocks: &mut Blocks<'_>,
) -> Result<(Header, Vec<u8>), DataError> {
    let mut banner: Option<(bool, Symmetry)> = None;
    let mut count = 0;
    for block in blocks {
        let mut block = block?;
        let (mut from, mut found) = (0, None);
        for line in lines(&block) {
            count += 1;
            from += memchr::memchr(b'\n', &block[from..]).map_or(block.len() - from, |i| i + 1);
            let text = line.trim_ascii();
            let Some((valued, symmetry)) = banner else {
                let parsed = parse_banner(path, text)
                    .map_err(|e| explained(e, path, BANNER, &[Format::MatrixMarket]));
                banner = Some(parsed?);
                continue;
            };
            if text.is_empty() || text.starts_with(b"%") {
                continue;
            }
            let [rows, columns, entries] = parse_sizes(path, count, text)?;
            if symmetry != Symmetry::General && rows != columns {
                let message = format!("expected a square matrix, found {rows} x {columns}");
                return Err(format_error(path, message));
            }
            let (rows, columns) = (rows as u32, columns as u32);
            found = Some(Header { lines: count, valued, symmetry, rows, columns, entries });
            break;
        }
        if let Some(header) = found {
            block.drain(..from);
            return Ok((header, block));
        }
    }
    Err(format_error(path, "expected a line of rows, columns and entries, found the end"))
}

/// Parses the first line: whether entries have values, and the symmetry.
fn parse_banner(path: &Path, line: &[u8]) -> Result<(bool, Symmetry), DataError> {
    let text = String::from_utf8_lossy(line).to_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    let wrong = || {
        let expected = "`%%MatrixMarket matrix coordinate`, then real, integer, unsigned-integer or pattern, then general, symmetric or \
                        skew-symmetric";
        format_error(path, format!("expected {expected}, found {:?}", cut(&text)))
    };
    let [mark, object, layout, field, symmetry] = words[..] else { return Err(wrong()) };
    let valued = match field {
        // `unsigned-integer` is an extension of SciPy.
        "real" | "integer" | "unsigned-integer" | "double" => true,
        "pattern" => false,
        _ => return Err(wrong()),
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        _ => return Err(wrong()),
    };
    if [mark, object, layout] == ["%%matrixmarket", "matrix", "coordinate"] {
        Ok((valued, symmetry))
    } else {
        Err(wrong())
    }
}

/// Parses the numbers of rows, columns and entries.
fn parse_sizes(path: &Path, line: u64, text: &[u8]) -> Result<[u64; 3], DataError> {
    let fields: Vec<Option<u64>> = text
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
        .take(4)
        .map(|field| parse_i64(field).and_then(|n| u64::try_from(n).ok()).filter(|&n| n <= LIMIT))
        .collect();
    match fields[..] {
        [Some(rows), Some(columns), Some(entries)] => Ok([rows, columns, entries]),
        _ => {
            let expected = format!("rows, columns and entries, each in 0..={LIMIT}");
            Err(table_error(path, line, 0, expected, text))
        }
    }
}
