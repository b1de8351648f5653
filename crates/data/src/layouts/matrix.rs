//! Reads tables of numbers without a header.

use std::io::Read;
use std::path::Path;

use burn_gnn_files::DataError;

use crate::columns::narrow::NotF32;
use crate::files::{Cut, Expected, format_error, table_error, text_error};
use crate::tables::text::blocks::{Blocks, lines, parse_blocks};
use crate::tables::text::decompress::text_of;
use crate::tables::text::format::explained;
use crate::tables::text::parse_number::{parse_f32, parse_f64, parse_i64};

/// A row-major matrix.
pub(crate) struct Matrix<T> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) values: Vec<T>,
}

/// Type of the numbers of a matrix.
pub(crate) trait Number: Copy + Send {
    /// Parses a cell. `Err`: the expected content.
    fn parse(text: &[u8]) -> Result<Self, Expected>;
}

impl Number for i64 {
    fn parse(text: &[u8]) -> Result<Self, Expected> {
        // Some programs write integers as floats.
        parse_i64(text.strip_suffix(b".0").unwrap_or(text)).ok_or_else(|| "an int64".into())
    }
}

impl Number for f32 {
    fn parse(text: &[u8]) -> Result<Self, Expected> {
        parse_f32(text).map_err(|e: NotF32| e.expected("a float".into(), ""))
    }
}

impl Number for f64 {
    fn parse(text: &[u8]) -> Result<Self, Expected> {
        parse_f64(text).ok_or_else(|| "a float".into())
    }
}

/// Reads a matrix in parallel. Rows have `cols` numbers, or as many as the first row, separated by `delimiter`.
pub(crate) fn read_matrix<T: Number>(
    path: &Path,
    cols: Option<usize>,
    delimiter: u8,
    progress: bool,
) -> Result<Matrix<T>, DataError> {
    read(path, cols, delimiter, progress)
        .map_err(|e| explained(e, path, "a table of numbers without a header", &[]))
}

fn read<T: Number>(
    path: &Path,
    cols: Option<usize>,
    delimiter: u8,
    progress: bool,
) -> Result<Matrix<T>, DataError> {
    let parsed = parse_blocks(Blocks::whole(path, progress)?, |_, block| {
        Ok(Block::<T>::parse(&block?, cols, delimiter))
    })?;
    let cols = cols.or(parsed.first().map(|block| block.cols)).unwrap_or(0);
    let (mut rows, mut values) = (0, vec![]);
    for block in parsed {
        if let Some((row, column, expected, found)) = block.problem {
            return Err(table_error(path, (rows + row) as u64 + 1, column, expected, found));
        }
        if block.cols != cols && block.rows > 0 {
            return Err(table_error(
                path,
                rows as u64 + 1,
                0,
                numbers(cols, delimiter),
                &format!("{} numbers", block.cols),
            ));
        }
        rows += block.rows;
        values.extend(block.values);
    }
    Ok(Matrix { rows, cols, values })
}

fn numbers(cols: usize, delimiter: u8) -> String {
    let between = if delimiter == b',' {
        "commas".to_owned()
    } else {
        format!("{:?}", char::from(delimiter))
    };
    format!("{cols} numbers separated by {between}")
}

struct Block<T> {
    rows: usize,
    cols: usize,
    values: Vec<T>,
    /// The first error: row, column (from 1; 0 for the whole row), expected content, found text.
    problem: Option<(usize, usize, Expected, Cut)>,
}

impl<T: Number> Block<T> {
    fn parse(block: &[u8], cols: Option<usize>, delimiter: u8) -> Self {
        let first = memchr::memchr(b'\n', block).map_or(block, |i| &block[..i]);
        let cols = cols.unwrap_or_else(|| first.split(|&b| b == delimiter).count());
        let mut out = Self { rows: 0, cols, values: vec![], problem: None };
        for line in lines(block) {
            let start = out.values.len();
            for (c, cell) in line.split(|&b| b == delimiter).enumerate() {
                match T::parse(cell) {
                    Ok(v) => out.values.push(v),
                    Err(_) if line.is_empty() => {}
                    Err(expected) => {
                        out.problem = Some((out.rows, c + 1, expected, cell.into()));
                        return out;
                    }
                }
            }
            if out.values.len() - start != cols {
                out.problem = Some((out.rows, 0, numbers(cols, delimiter).into(), line.into()));
                return out;
            }
            out.rows += 1;
        }
        out
    }
}

/// Reads a short text file with names of types.
pub(crate) fn read_names(path: &Path) -> Result<String, DataError> {
    /// Largest accepted size in bytes.
    const MOST: u64 = 1 << 18;
    let mut text = String::new();
    let reader = text_of(path, false)?;
    reader.take(MOST + 1).read_to_string(&mut text).map_err(|e| text_error(path, e))?;
    if text.len() as u64 > MOST {
        return Err(format_error(
            path,
            format!("expected at most {MOST} bytes of names, found more"),
        ));
    }
    Ok(text)
}
