//! Reads CSV files: columns by name, in any dialect.

use std::io::Read;
use std::path::Path;

use burn_gnn_files::DataError;

use super::attributes::AttributeReader;
use super::columns::{Columns, Wrong};
use super::common_rows::CommonRows;
use super::csv_header::Head;
use super::field::{Notation, TextField};
use super::header::Header;
use crate::files::{Cut, Expected, Progress, decoder_error, format_error};
use crate::tables::schema::csv_options::Csv;
use crate::tables::schema::decoder::Decoder;
use crate::tables::schema::read_options::ReadOptions;
use crate::tables::text::blocks::parse_blocks;
use crate::tables::text::csv_records::{RecordBlocks, behind_lines, line_of, quote_error};
use crate::tables::text::decompress::text;
use crate::tables::text::dialect::{Dialect, Records, Span, line_ends};
use crate::tables::text::source::Piece;

impl Csv {
    /// The dialect of these options, or an error for options that contradict each other.
    fn dialect(&self) -> Result<Dialect, DataError> {
        let refuse = |argument: &str, expected: &str, found: String| {
            Err(decoder_error(
                format!("csv.{argument}"),
                format!("expected {expected}, got {found}"),
            ))
        };
        let mut special = vec![];
        for (argument, character) in
            [("quote", self.quote), ("escape", self.escape), ("decimal", Some(self.decimal))]
        {
            let Some(character) = character else { continue };
            if !character.is_ascii_graphic() || character.is_ascii_alphanumeric() {
                return refuse(argument, "an ASCII mark", format!("{character:?}"));
            }
            if special.contains(&character) || self.delimiter.contains(character) {
                let expected = "quote, escape, decimal and delimiter that differ";
                return refuse(argument, expected, format!("{character:?} twice"));
            }
            special.push(character);
        }
        if self.delimiter.is_empty() || self.delimiter.contains(['\n', '\r']) {
            let expected = "a text without line ends that is not empty";
            return refuse("delimiter", expected, format!("{:?}", self.delimiter));
        }
        if self.comment.as_ref().is_some_and(String::is_empty) {
            return refuse("comment", "a mark that is not empty", "an empty one".into());
        }
        let byte = |c: char| c as u8;
        Ok(Dialect::new(
            self.delimiter.as_bytes(),
            self.quote.map(byte),
            self.escape.map(byte),
            self.comment.as_deref(),
        ))
    }

    /// Opens a file as blocks of records, from the header or the first row on.
    pub(super) fn blocks(
        &self,
        path: &Path,
        options: &ReadOptions,
        bar: &Progress,
    ) -> Result<RecordBlocks, DataError> {
        let dialect = self.dialect()?;
        let text: Box<dyn Read + Send> =
            self.encoding.decoded(text(path, options.max_expansion, bar)?);
        let text = match self.skipped_lines {
            0 => text,
            lines => behind_lines(path, text, lines)?,
        };
        Ok(RecordBlocks::new(path, dialect, text))
    }
}

/// Reads the rows of a file. Blocks of rows are parsed in parallel.
pub(crate) fn read_csv(
    piece: &Piece,
    ids: &[&'static str],
    decoder: &Decoder,
    csv: &Csv,
    options: &ReadOptions,
    bar: &Progress,
) -> Result<(Header, Vec<Columns>), DataError> {
    let path = &piece.path;
    if piece.range.is_some() {
        return Err(format_error(
            path,
            "expected at least as many CSV files as shards; a CSV file is not cut, since quotes may hold line ends",
        ));
    }
    let mut blocks = csv.blocks(path, options, bar)?;
    let dialect = blocks.dialect.clone();
    let first = blocks.next().transpose()?.unwrap_or_default();
    let head = Head::read(path, csv, &dialect, &first)?;
    let (header, attributes) =
        csv.header(path, head.line, head.names(csv, &dialect, &first), ids, decoder)?;
    let rows = Rows::new(csv, &dialect, &header, decoder, &attributes, head.width);
    let stop = std::sync::atomic::AtomicUsize::new(usize::MAX);
    let order = std::sync::atomic::Ordering::Relaxed;
    let blocks = std::iter::once(Ok(first)).chain(blocks).enumerate();
    let blocks = blocks.take_while(|(i, _)| *i <= stop.load(order));
    let parsed = parse_blocks(blocks.map(|(_, block)| block), |i, block| {
        let block = block?;
        let from = if i == 0 { head.rows } else { 0 };
        let columns = rows.parse(&block, from, options.max_problems);
        if columns.problems.len() >= options.max_problems {
            stop.fetch_min(i, order);
        }
        Ok((columns, line_ends(&block)))
    })?;
    let mut before = csv.skipped_lines;
    let mut out = Vec::with_capacity(parsed.len());
    for (mut columns, lines) in parsed {
        for problem in &mut columns.problems {
            problem.line = problem.line.map(|line| before + line);
        }
        before += lines;
        out.push(columns);
    }
    Ok((header, out))
}

/// The parser of the rows of a file.
struct Rows<'a> {
    csv: &'a Csv,
    dialect: &'a Dialect,
    header: &'a Header,
    decoder: &'a Decoder,
    notation: Notation,
    /// Fields of a row.
    width: usize,
    /// The columns that are read, ascending.
    wanted: Vec<usize>,
    /// Positions in `wanted` of the columns that [`Columns::lead`] reads, and of the attributes.
    lead: Vec<usize>,
    attributes: Vec<usize>,
    /// The parser of rows in their most common form, if the columns have one.
    common: Option<CommonRows>,
}

/// The bytes of a field: a range of the block or, if some are escaped, of the buffer of unescaped fields.
#[derive(Clone, Copy, Default)]
struct Content {
    from: usize,
    to: usize,
    moved: bool,
}

/// Buffers that the rows of a block share.
struct RowBuffers {
    /// Fields of the columns that are read.
    contents: Vec<Content>,
    /// Fields without their escapes.
    unescaped: Vec<u8>,
}

impl<'a> Rows<'a> {
    fn new(
        csv: &'a Csv,
        dialect: &'a Dialect,
        header: &'a Header,
        decoder: &'a Decoder,
        attributes: &[usize],
        width: usize,
    ) -> Self {
        let mut wanted = [&header.positions[..], attributes].concat();
        wanted.sort_unstable();
        wanted.dedup();
        let places = |columns: &[usize]| {
            columns.iter().map(|c| wanted.partition_point(|w| w < c)).collect::<Vec<_>>()
        };
        let (lead, attributes) = (places(&header.positions), places(attributes));
        let notation = Notation { decimal: csv.decimal as u8, time: csv.time_unit };
        let common = CommonRows::new(csv, header, decoder, &wanted, [&lead, &attributes], width);
        Self { csv, dialect, header, decoder, notation, width, wanted, lead, attributes, common }
    }

    /// Parses the rows of a block from byte `from` on; stops after `most` invalid rows.
    fn parse(&self, block: &[u8], from: usize, most: usize) -> Columns {
        let mut out = Columns::empty(self.header, self.decoder);
        let reader = AttributeReader::new(self.decoder, self.notation);
        let mut records = Records { text: block, at: from, dialect: self.dialect };
        let mut buffers =
            RowBuffers { contents: vec![Content::default(); self.wanted.len()], unescaped: vec![] };
        // Reserves for as many rows as the first lines suggest, and at most one row per `width` bytes.
        let (sample, left) = (&block[from..block.len().min(from + (1 << 14))], block.len() - from);
        let like_these = (line_ends(sample) as usize + 1) * left / sample.len().max(1) + 1;
        out.reserve(like_these.min(left / self.width.max(1) + 1), self.decoder);
        let (mut counted, mut lines, mut texts) = (0, 0, vec![]);
        while out.problems.len() < most
            && let Some(start) = records.start()
        {
            if let Some(common) = self.common.as_ref().filter(|_| out.problems.is_empty())
                && let Some(end) = common.parse(block, start, self.dialect, &mut texts, &mut out)
            {
                records.at = end;
                continue;
            }
            match self.row(&mut records, &reader, &mut buffers, &mut out) {
                Ok(()) => out.end_row(Ok(()), None),
                Err((at, wrong)) => {
                    let at = at.unwrap_or(start);
                    lines += line_ends(&block[counted..at]);
                    counted = at;
                    out.end_row(Err(wrong), Some(lines + 1));
                }
            }
        }
        out.shrink();
        out
    }

    /// Parses a record and appends it to the columns. The error contains its position, unless that is the start of the
    /// record. After an invalid quote no more records are read.
    fn row(
        &self,
        records: &mut Records<'_>,
        reader: &AttributeReader<'_>,
        buffers: &mut RowBuffers,
        out: &mut Columns,
    ) -> Result<(), (Option<usize>, Wrong)> {
        let (start, text) = (records.at, records.text);
        let RowBuffers { contents, unescaped } = buffers;
        unescaped.clear();
        let (mut column, mut next) = (0, 0);
        loop {
            let (field, last) = records.field().map_err(|bad| {
                records.at = text.len();
                (Some(bad.from), (column + 1, quote_error(bad), bad.found(text).into()))
            })?;
            if self.wanted.get(next) == Some(&column) {
                contents[next] = self.content(records, field, unescaped);
                next += 1;
            }
            column += 1;
            if last {
                break;
            }
        }
        if column != self.width {
            let expected = Expected::from(format!("{} fields, not {column}", self.width));
            let remedy = if column > self.width {
                "quote fields that hold the delimiter"
            } else {
                "complete the row; an empty field is nothing between two delimiters"
            };
            let found = Cut::from(line_of(&text[start..records.at]));
            return Err((None, (0, expected.or(remedy), found)));
        }
        let field = |place: usize| {
            let Content { from, to, moved } = contents[place];
            if moved { &unescaped[from..to] } else { &text[from..to] }
        };
        let lead = |k: usize| Ok(TextField { text: field(self.lead[k]), notation: self.notation });
        out.lead(self.header, self.decoder, lead).map_err(|wrong| (None, wrong))?;
        for (i, &place) in self.attributes.iter().enumerate() {
            reader.push(i, field(place), &mut out.table.attributes).map_err(|e| {
                let wrong = (
                    self.wanted[place] + 1,
                    e.of_column(&self.csv.attributes[i]),
                    field(place).into(),
                );
                (None, wrong)
            })?;
        }
        Ok(())
    }

    #[inline]
    fn content(&self, records: &Records<'_>, field: Span, unescaped: &mut Vec<u8>) -> Content {
        let raw = &records.text[field.from..field.to];
        let is_missing = |text: &[u8]| self.csv.missing.iter().any(|m| m.as_bytes() == text);
        // A marker such as `\N` is not an escaped `N`.
        if !self.csv.missing.is_empty() && is_missing(raw) {
            return Content::default();
        }
        if !field.escaped {
            return Content { from: field.from, to: field.to, moved: false };
        }
        let from = unescaped.len();
        records.unescape(field, unescaped);
        if is_missing(&unescaped[from..]) {
            return Content::default();
        }
        Content { from, to: unescaped.len(), moved: true }
    }
}

/// The line of row `row` of a file that was read without errors.
pub(crate) fn csv_line(path: &Path, csv: &Csv, row: usize) -> u64 {
    let options = ReadOptions { max_expansion: u32::MAX, ..ReadOptions::default() };
    let Ok(blocks) = csv.blocks(path, &options, &Progress::hidden()) else { return 0 };
    let dialect = blocks.dialect.clone();
    // The header is a record.
    let mut left = row + usize::from(csv.columns.is_none());
    let mut lines = csv.skipped_lines;
    for block in blocks {
        let Ok(block) = block else { return 0 };
        let mut records = Records { text: &block, at: 0, dialect: &dialect };
        while let Some(start) = records.start() {
            if left == 0 {
                return lines + line_ends(&block[..start]) + 1;
            }
            left -= 1;
            while records.field().is_ok_and(|(_, last)| !last) {}
        }
        lines += line_ends(&block);
    }
    0
}
