//! Reads all columns of a CSV file as texts.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn_gnn_files::DataError;

use super::csv_header::Head;
use crate::columns::data_column::MOST_COLUMNS;
use crate::files::{Cut, Expected, Progress, format_error, table_error, within_limit};
use crate::tables::schema::csv_options::Csv;
use crate::tables::schema::read_options::ReadOptions;
use crate::tables::text::blocks::parse_blocks;
use crate::tables::text::csv_records::{line_of, quote_error};
use crate::tables::text::dialect::{Dialect, Records, line_ends};

/// The columns of a CSV file. An empty field, and a text of [`Csv::missing`], is a missing value.
pub(crate) struct TextColumns {
    pub(crate) names: Vec<String>,
    pub(crate) rows: usize,
    blocks: Vec<Block>,
}

/// The fields of some rows.
struct Block {
    rows: usize,
    columns: Vec<Fields>,
}

impl Block {
    fn fields(&self, column: usize) -> impl Iterator<Item = Option<&[u8]>> + Clone {
        let Fields { bytes, ends } = &self.columns[column];
        (0..self.rows).map(move |row| {
            let from = if row == 0 { 0 } else { ends[row - 1] as usize };
            let field = &bytes[from..ends[row] as usize];
            (!field.is_empty()).then_some(field)
        })
    }
}

/// The fields of a column in some rows, in one buffer.
#[derive(Default)]
struct Fields {
    bytes: Vec<u8>,
    /// Where each field ends. A block is shorter than 4 GiB.
    ends: Vec<u32>,
}

/// An invalid record: its line in the block, the field, the expected and the found text.
type Invalid = (u64, usize, Expected, Cut);

impl TextColumns {
    /// Reads a file, at most `max_rows` rows of it.
    pub(crate) fn read(
        path: &Path,
        csv: &Csv,
        max_expansion: u32,
        max_rows: Option<usize>,
    ) -> Result<Self, DataError> {
        let options = ReadOptions { max_expansion, ..ReadOptions::default() };
        let mut blocks = csv.blocks(path, &options, &Progress::hidden())?;
        let dialect = blocks.dialect.clone();
        let first = blocks.next().transpose()?.unwrap_or_default();
        let head = Head::read(path, csv, &dialect, &first)?;
        let names: Vec<String> = head
            .names(csv, &dialect, &first)
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect();
        if head.width > MOST_COLUMNS {
            let expected = format!("at most {MOST_COLUMNS} columns, not {}", head.width);
            let found = names.first().map_or("", String::as_str);
            return Err(table_error(path, head.line, 0, expected, found));
        }
        // The first columns are named where the file has no header; the others are read without a name.
        let width = head.width;
        let (stop, read) = (AtomicUsize::new(usize::MAX), AtomicUsize::new(0));
        let order = Ordering::Relaxed;
        let most = max_rows.unwrap_or(usize::MAX);
        let blocks = std::iter::once(Ok(first)).chain(blocks).enumerate();
        let blocks = blocks
            .take_while(|(i, _)| *i <= stop.load(order) && (*i == 0 || read.load(order) < most));
        let parsed = parse_blocks(blocks.map(|(_, block)| block), |i, block| {
            let block = block?;
            if u32::try_from(block.len()).is_err() {
                return Err(format_error(path, "expected records below 4 GiB, found a longer one"));
            }
            let from = if i == 0 { head.rows } else { 0 };
            let (fields, invalid) = parse(&block, from, csv, &dialect, width);
            if invalid.is_some() {
                stop.fetch_min(i, order);
            }
            read.fetch_add(fields.rows, order);
            Ok((fields, invalid, line_ends(&block)))
        })?;
        let (mut before, mut rows, mut out) = (csv.skipped_lines, 0, vec![]);
        for (block, invalid, lines) in parsed {
            // How many blocks after the last row are read depends on the threads.
            if rows >= most {
                break;
            }
            let needed = rows.saturating_add(block.rows) < most;
            if let Some((line, column, expected, found)) = invalid.filter(|_| needed) {
                let expected = match names.get(column.wrapping_sub(1)) {
                    Some(name) => expected.of_column(name),
                    None => expected,
                };
                return Err(table_error(path, before + line, column, expected, found));
            }
            before += lines;
            rows += block.rows;
            out.push(block);
        }
        within_limit(path.display(), "rows", rows as u64)?;
        Ok(Self { names, rows: rows.min(most), blocks: out })
    }

    /// The fields of a column; `None` for a missing value.
    pub(crate) fn fields(&self, column: usize) -> impl Iterator<Item = Option<&[u8]>> + Clone {
        self.blocks.iter().flat_map(move |block| block.fields(column)).take(self.rows)
    }

    /// Bytes of the fields of a column.
    pub(crate) fn bytes(&self, column: usize) -> usize {
        self.blocks.iter().map(|b| b.columns[column].bytes.len()).sum()
    }
}

/// Parses the records of a block from byte `from` on, up to the first invalid one.
fn parse(
    text: &[u8],
    from: usize,
    csv: &Csv,
    dialect: &Dialect,
    width: usize,
) -> (Block, Option<Invalid>) {
    let mut block = Block { rows: 0, columns: vec![] };
    block.columns.resize_with(width, Fields::default);
    let is_missing = |text: &[u8]| csv.missing.iter().any(|m| m.as_bytes() == text);
    let mut records = Records { text, at: from, dialect };
    let mut invalid = None;
    while let Some(start) = records.start() {
        let mut column = 0;
        loop {
            let (field, last) = match records.field() {
                Ok(field) => field,
                Err(bad) => {
                    let line = line_ends(&text[..bad.from]) + 1;
                    invalid = Some((line, column + 1, quote_error(bad), bad.found(text).into()));
                    break;
                }
            };
            if let Some(fields) = block.columns.get_mut(column) {
                let raw = &text[field.from..field.to];
                // A marker such as `\N` is not an escaped `N`.
                if csv.missing.is_empty() || !is_missing(raw) {
                    let before = fields.bytes.len();
                    if field.escaped {
                        records.unescape(field, &mut fields.bytes);
                        if is_missing(&fields.bytes[before..]) {
                            fields.bytes.truncate(before);
                        }
                    } else {
                        fields.bytes.extend_from_slice(raw);
                    }
                }
                fields.ends.push(fields.bytes.len() as u32);
            }
            column += 1;
            if last {
                break;
            }
        }
        if invalid.is_some() {
            break;
        }
        if column != width {
            let expected = Expected::from(format!("{width} fields, not {column}"));
            let remedy = if column > width {
                "quote fields that hold the delimiter"
            } else {
                "complete the row; an empty field is nothing between two delimiters"
            };
            let line = line_ends(&text[..start]) + 1;
            let found = Cut::from(line_of(&text[start..records.at]));
            invalid = Some((line, 0, expected.or(remedy), found));
            break;
        }
        block.rows += 1;
    }
    (block, invalid)
}
