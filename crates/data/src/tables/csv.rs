//! Reads CSV files: columns by name, in any dialect.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Ids;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::attr_type::AttrType;
use super::attributes::AttributeReader;
use super::blocks::{parse_blocks, text};
use super::columns::{Columns, Notation, TextField, Wrong};
use super::csv_text::{RecordBlocks, behind_lines, quote_error};
use super::decoder::{Decoder, Slot};
use super::dialect::{Dialect, Records, Span, line_ends};
use super::encoding::Encoding;
use super::header::Header;
use super::options::ReadOptions;
use super::parse_number::{leading_f32, leading_i64};
use super::source::Piece;
use super::time::TimeUnit;
use crate::files::{Cut, Expected, Progress, decoder_error, format_error, table_error};

/// Which columns of a CSV file a [`Decoder`] reads, by name, and how the file is written: by default as in RFC 4180, in
/// UTF-8, with a header. Columns that are not named are not read. Empty lines are passed over. Every other row is read or
/// is an error: also a quote that is not closed, in a column that is read or not.
///
/// | pandas' `read_csv` | here |
/// | --- | --- |
/// | `sep="::"` (one character or more, no regular expression) | `with_delimiter("::")` |
/// | `header=None, names=[…]` | `with_columns([…])`; columns behind those named are not read |
/// | `skiprows=3` | `with_skipped_lines(3)` |
/// | `comment="#"` | `with_comment("#")`, at the start of a line alone |
/// | `quoting=csv.QUOTE_NONE` | `without_quotes()` |
/// | `quotechar="'"`, `escapechar="\\"` | `with_quote('\'')`, `with_escape('\\')` |
/// | `na_values=["NA"]`; nothing but an empty field is missing unless it is named | `with_missing(["NA"])` |
/// | `decimal=","` | `with_decimal(',')` |
/// | `encoding="latin-1"` | `with_encoding(Encoding::Latin1)` |
/// | `parse_dates=["when"]` | `with_timestamp("when").with_time_unit(TimeUnit::Seconds)` |
///
/// A Parquet file (feature `parquet`), detected from its first bytes, is read by the same names: its ids are texts if
/// their column holds texts, whatever [`text_ids`](Self::text_ids) says, a null is an empty field, a time is a number
/// in the unit of its column, and lines in errors are rows, counted from 1. A list column of numbers is an attribute of
/// the type [`AttrType::vector`](super::AttrType::vector), by the name of the list. What says how text is written,
/// missing values included, does not apply to it.
///
/// ```
/// use burn_gnn_data::{AttrType, Csv, Decoder, read_nodes};
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("people.csv");
/// std::fs::write(&path, "city;person;age\n\"Bonn; Bad Godesberg\";7;40\nKöln;9;31\n").unwrap();
/// let csv = Csv::new(["age", "city"]).with_id("person").with_delimiter(';');
/// let people = read_nodes(&path, &Decoder::new().with_attributes([AttrType::Int, AttrType::Text]).csv(csv))?;
/// assert_eq!((people.ids.number(9), people.columns.attributes.ints), (Some(1), vec![40, 31]));
/// assert_eq!(people.columns.attributes.texts[0].get(0), "Bonn; Bad Godesberg");
/// // The ratings of MovieLens, without a header:
/// let ratings = dir.path().join("ratings.dat");
/// std::fs::write(&ratings, "1::1193::5::978300760\n1::661::3::978302109\n").unwrap();
/// let csv = Csv::default().with_delimiter("::").with_columns(["user", "movie", "stars", "when"]);
/// let csv = csv.with_endpoints("user", "movie").with_weight("stars").with_timestamp("when");
/// let ratings = burn_gnn_data::read_edges(&ratings, &Decoder::new().csv(csv))?;
/// assert_eq!(ratings.columns.weights.unwrap(), [5.0, 3.0]);
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Csv {
    /// Between fields; one character or more. A comma by default.
    pub delimiter: String,
    /// Names of the first columns of a file without a header; `None`: the first row that is no comment has the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Lines before the header, or before the first row, that are passed over, whatever they hold.
    #[serde(skip_serializing_if = "is_default")]
    pub skipped_lines: u64,
    /// What lines begin with that are passed over; `None` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Around fields that hold delimiters, line ends or quotes; two of them inside are one. An ASCII character, `"` by
    /// default; `None`: quotes are characters like any other.
    pub quote: Option<char>,
    /// Before a character that stands for itself, inside of quotes and outside; an ASCII character. `None` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escape: Option<char>,
    /// Between the whole number and the fraction of weights and float attributes; an ASCII character, `.` by default.
    pub decimal: char,
    /// Fields that are read as empty ones, also in quotes; none by default. See [`Decoder::empty_label`] and
    /// [`Decoder::empty_as_zero`] for what an empty field is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// How characters are stored.
    #[serde(skip_serializing_if = "is_default")]
    pub encoding: Encoding,
    /// What timestamps become: those of the file are seconds since 1970, with a fraction or not, or dates of ISO 8601.
    /// `None`: timestamps are whole numbers as they stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<TimeUnit>,
    /// Column of node ids; `id` by default.
    pub id: String,
    /// Column of source ids; `src_id` by default.
    pub src: String,
    /// Column of destination ids; `dst_id` by default.
    pub dst: String,
    /// Whether ids are texts and not whole numbers: those of nodes, and of both endpoints of edges.
    pub text_ids: bool,
    /// Whether the source ids of edges are texts, whatever [`text_ids`](Self::text_ids) says.
    pub text_src_ids: bool,
    /// Whether the destination ids of edges are texts, whatever [`text_ids`](Self::text_ids) says.
    pub text_dst_ids: bool,
    /// Column of weights; `weight` where nothing is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// Column of labels; `label` where nothing is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Column of timestamps; `timestamp` where nothing is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Columns of the attributes, one for each of [`Decoder::attr_types`].
    pub attributes: Vec<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Csv {
    fn default() -> Self {
        Self {
            delimiter: ",".into(),
            columns: None,
            skipped_lines: 0,
            comment: None,
            quote: Some('"'),
            escape: None,
            decimal: '.',
            missing: vec![],
            encoding: Encoding::default(),
            time_unit: None,
            id: "id".into(),
            src: "src_id".into(),
            dst: "dst_id".into(),
            text_ids: false,
            text_src_ids: false,
            text_dst_ids: false,
            weight: None,
            label: None,
            timestamp: None,
            attributes: vec![],
        }
    }
}

impl Csv {
    /// Attributes in these columns; everything else in columns of GraphLearn's names.
    pub fn new(attributes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { attributes: attributes.into_iter().map(Into::into).collect(), ..Self::default() }
    }
    /// With another character, or several, between fields.
    #[must_use]
    #[doc(alias = "sep")]
    #[doc(alias = "separator")]
    pub fn with_delimiter(mut self, delimiter: impl Into<String>) -> Self {
        self.delimiter = delimiter.into();
        self
    }
    /// For a file without a header whose first columns have these names; rows may have more fields, all the same number.
    #[must_use]
    #[doc(alias = "header")]
    #[doc(alias = "names")]
    pub fn with_columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }
    /// Without the first lines of the file.
    #[must_use]
    #[doc(alias = "skiprows")]
    pub fn with_skipped_lines(mut self, lines: u64) -> Self {
        self.skipped_lines = lines;
        self
    }
    /// Without lines that begin with this mark.
    #[must_use]
    pub fn with_comment(mut self, mark: impl Into<String>) -> Self {
        self.comment = Some(mark.into());
        self
    }
    /// With another character than `"` around fields.
    #[must_use]
    pub fn with_quote(mut self, quote: char) -> Self {
        self.quote = Some(quote);
        self
    }
    /// With quotes that are characters like any other.
    #[must_use]
    pub fn without_quotes(mut self) -> Self {
        self.quote = None;
        self
    }
    /// With this character before one that stands for itself, as Spark writes `\"` inside of quotes.
    #[must_use]
    pub fn with_escape(mut self, escape: char) -> Self {
        self.escape = Some(escape);
        self
    }
    /// With fractions behind this character, such as a comma.
    #[must_use]
    pub fn with_decimal(mut self, decimal: char) -> Self {
        self.decimal = decimal;
        self
    }
    /// With these texts for missing values, such as `NA` or `\N`.
    #[must_use]
    #[doc(alias = "na_values")]
    pub fn with_missing(mut self, texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.missing = texts.into_iter().map(Into::into).collect();
        self
    }
    /// With another encoding than UTF-8.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        self
    }
    /// With timestamps in this unit, of seconds since 1970 or of dates of ISO 8601 (`2014-01-31`, `2014-01-31T12:00:00.5Z`,
    /// UTC unless they say otherwise). A time between two of the unit is an error. In a Parquet file whole numbers and
    /// times stay as they are.
    #[must_use]
    #[doc(alias = "parse_dates")]
    pub fn with_time_unit(mut self, unit: TimeUnit) -> Self {
        self.time_unit = Some(unit);
        self
    }
    /// With another column of node ids.
    #[must_use]
    pub fn with_id(mut self, name: impl Into<String>) -> Self {
        self.id = name.into();
        self
    }
    /// With other columns of source and destination ids.
    #[must_use]
    pub fn with_endpoints(mut self, src: impl Into<String>, dst: impl Into<String>) -> Self {
        (self.src, self.dst) = (src.into(), dst.into());
        self
    }
    /// With ids that are texts, of nodes and of both endpoints of edges.
    #[must_use]
    pub fn with_text_ids(mut self) -> Self {
        self.text_ids = true;
        self
    }
    /// With edges whose sources have texts for ids and whose destinations may have numbers.
    #[must_use]
    pub fn with_text_src_ids(mut self) -> Self {
        self.text_src_ids = true;
        self
    }
    /// With edges whose destinations have texts for ids and whose sources may have numbers.
    #[must_use]
    pub fn with_text_dst_ids(mut self) -> Self {
        self.text_dst_ids = true;
        self
    }
    /// With weights, in this column.
    #[must_use]
    pub fn with_weight(mut self, name: impl Into<String>) -> Self {
        self.weight = Some(name.into());
        self
    }
    /// With labels, in this column.
    #[must_use]
    pub fn with_label(mut self, name: impl Into<String>) -> Self {
        self.label = Some(name.into());
        self
    }
    /// With timestamps, in this column.
    #[must_use]
    pub fn with_timestamp(mut self, name: impl Into<String>) -> Self {
        self.timestamp = Some(name.into());
        self
    }

    /// How the text is split; what cannot be is an error.
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

    /// The blocks of a file, from the header or the first row on.
    fn blocks(
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

/// Fields of a row that are looked at for an error: more than it shows.
const MOST: usize = 100;

/// The first fields of a row, as errors show them.
#[cfg_attr(
    not(any(feature = "rdf", feature = "yaml")),
    allow(dead_code, reason = "read by formats that are features")
)]
pub(crate) fn joined<'a>(fields: impl Iterator<Item = &'a [u8]>, between: &str) -> String {
    fields.take(MOST).map(String::from_utf8_lossy).collect::<Vec<_>>().join(between)
}

/// The rows of a file; blocks of them are parsed in parallel.
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

/// The names of the columns, in the first block of a file.
struct Head {
    /// Where they begin, and where the rows do.
    from: usize,
    rows: usize,
    /// Line of the names.
    line: u64,
    /// Fields of each row.
    width: usize,
}

impl Head {
    fn read(path: &Path, csv: &Csv, dialect: &Dialect, block: &[u8]) -> Result<Self, DataError> {
        let mut records = Records { text: block, at: 0, dialect };
        let named = csv.columns.as_ref().map(Vec::len);
        let Some(from) = records.start() else {
            let line = csv.skipped_lines + 1;
            return Ok(Self {
                from: block.len(),
                rows: block.len(),
                line,
                width: named.unwrap_or(0),
            });
        };
        let line = csv.skipped_lines + 1 + line_ends(&block[..from]);
        let mut width = 0;
        loop {
            width += 1;
            match records.field() {
                Ok((_, true)) => break,
                Ok(_) => {}
                Err(bad) => {
                    let line = line + line_ends(&block[from..bad.from]);
                    return Err(table_error(path, line, width, quote_error(bad), bad.found(block)));
                }
            }
        }
        if let Some(named) = named.filter(|&named| named > width) {
            let remedy = "name as many columns as there are by `Csv::with_columns`; `Csv::with_delimiter` says what is \
                          between them";
            let expected =
                Expected::from(format!("{named} fields or more, not {width}")).or(remedy);
            let found = line_of(&block[from..records.at]);
            return Err(table_error(path, line, 0, expected, found));
        }
        let rows = if named.is_some() { from } else { records.at };
        Ok(Self { from, rows, line, width })
    }

    fn names<'n>(
        &self,
        csv: &'n Csv,
        dialect: &'n Dialect,
        block: &'n [u8],
    ) -> impl Iterator<Item = Cow<'n, [u8]>> + Clone {
        let records = Records { text: block, at: self.from, dialect };
        let read = csv.columns.is_none() && self.from < block.len();
        let of_file = read.then(|| {
            records.fields().map(move |field| {
                if !field.escaped {
                    return Cow::Borrowed(&block[field.from..field.to]);
                }
                let mut name = vec![];
                records.unescape(field, &mut name);
                Cow::Owned(name)
            })
        });
        let given = csv.columns.iter().flatten().map(|name| Cow::Borrowed(name.as_bytes()));
        given.chain(of_file.into_iter().flatten())
    }
}

/// A record without its line end.
fn line_of(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// How the rows of a file are parsed.
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
    /// Where among them the columns stand that [`Columns::lead`] reads, and those of the attributes.
    lead: Vec<usize>,
    attributes: Vec<usize>,
    /// How rows in their usual form are parsed, where there is one.
    usual: Option<UsualRows>,
}

/// A field that is read: its bytes in the block or, where some are escaped, in another buffer.
#[derive(Clone, Copy, Default)]
struct Content {
    from: usize,
    to: usize,
    moved: bool,
}

/// What the rows of a block share.
struct RowBuffers {
    /// Of the columns that are read.
    contents: Vec<Content>,
    /// What is left of fields without their escapes.
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
        let usual = UsualRows::new(csv, header, decoder, &wanted, [&lead, &attributes], width);
        Self { csv, dialect, header, decoder, notation, width, wanted, lead, attributes, usual }
    }

    /// The rows of a block from byte `from` on; stops at the `most`-th problem.
    fn parse(&self, block: &[u8], from: usize, most: usize) -> Columns {
        let mut out = Columns::empty(self.header, self.decoder);
        let reader = AttributeReader::new(self.decoder, self.notation);
        let mut records = Records { text: block, at: from, dialect: self.dialect };
        let mut buffers =
            RowBuffers { contents: vec![Content::default(); self.wanted.len()], unescaped: vec![] };
        // As many rows as there are lines, if those at the beginning are like the others; each has a byte for each field.
        let (sample, left) = (&block[from..block.len().min(from + (1 << 14))], block.len() - from);
        let like_these = (line_ends(sample) as usize + 1) * left / sample.len().max(1) + 1;
        out.reserve(like_these.min(left / self.width.max(1) + 1), self.decoder);
        let (mut counted, mut lines, mut texts) = (0, 0, vec![]);
        while out.problems.len() < most
            && let Some(start) = records.start()
        {
            if let Some(usual) = self.usual.as_ref().filter(|_| out.problems.is_empty())
                && let Some(end) = usual.parse(block, start, self.dialect, &mut texts, &mut out)
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

    /// Parses one record onto the ends of the columns. The error says where it is, unless that is the start of the
    /// record; behind a quote that encloses no field there are no records.
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
        // A marker such as `\N` is no escaped `N`.
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

/// What the field of a column becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Of the `k`-th column of ids.
    Id(usize),
    Weight,
    Label,
    Time,
    /// The `k`-th number of its kind among the attributes.
    Float(usize),
    Int(usize),
    Text(usize),
}

/// Rows of numbers in their shortest form and of texts without quotes, which most rows are: they are parsed while they are
/// split. All other rows are left to [`Rows::row`], which gives the same values for these.
struct UsualRows {
    /// Ascending columns.
    targets: Vec<(usize, Target)>,
    delimiter: u8,
    quote: Option<u8>,
    width: usize,
    floats: usize,
    ints: usize,
}

impl UsualRows {
    fn new(
        csv: &Csv,
        header: &Header,
        decoder: &Decoder,
        wanted: &[usize],
        [lead, attributes]: [&[usize]; 2],
        width: usize,
    ) -> Option<Self> {
        let &[delimiter] = csv.delimiter.as_bytes() else { return None };
        let texts = decoder.text_labels || decoder.attr_types.contains(&AttrType::Text);
        // A marker that is a number, or a text, is no value.
        let is_number = |m: &String| m.bytes().all(|b| b"0123456789.+-eE".contains(&b));
        let marked = csv.missing.iter().any(is_number) || texts && !csv.missing.is_empty();
        let twice = wanted.len() < lead.len() + attributes.len();
        let other = decoder.text_labels || header.text_ids.contains(&true) || csv.decimal != '.';
        if marked || twice || other || decoder.timestamped && csv.time_unit.is_some() {
            return None;
        }
        let ids = (0..header.text_ids.len()).map(Target::Id);
        let optional = [
            (decoder.weighted, Target::Weight),
            (decoder.labeled, Target::Label),
            (decoder.timestamped, Target::Time),
        ];
        let first = ids.chain(optional.into_iter().filter(|o| o.0).map(|o| o.1));
        let mut targets: Vec<(usize, Target)> =
            lead.iter().map(|&place| wanted[place]).zip(first).collect();
        for ((t, slot), &place) in decoder.attr_types.iter().zip(decoder.slots()).zip(attributes) {
            let target = match (t, slot) {
                (AttrType::Float, Slot::Float(k)) => Target::Float(k),
                (AttrType::Int, Slot::Int(k)) => Target::Int(k),
                (AttrType::Text, Slot::Text(k)) => Target::Text(k),
                _ => return None,
            };
            targets.push((wanted[place], target));
        }
        targets.sort_unstable_by_key(|t| t.0);
        let [floats, ints, ..] = decoder.widths();
        let quote = csv.quote.map(|q| q as u8);
        Some(Self { targets, delimiter, quote, width, floats, ints })
    }

    /// Parses the row at `start` onto the ends of the columns, all of as many rows, and returns where the next one begins.
    /// `None`: the row has another form, and nothing of it is in the columns.
    #[inline]
    fn parse<'t>(
        &self,
        text: &'t [u8],
        start: usize,
        dialect: &Dialect,
        texts: &mut Vec<(usize, &'t str)>,
        out: &mut Columns,
    ) -> Option<usize> {
        texts.clear();
        let attributes = &mut out.table.attributes;
        let (floats, ints) = (attributes.floats.len(), attributes.ints.len());
        attributes.floats.resize(floats + self.floats, 0.0);
        attributes.ints.resize(ints + self.ints, 0);
        let end = self.fields(text, start, dialect, texts, out, [floats, ints]);
        if end.is_none() {
            out.truncate(self.floats, self.ints);
        } else {
            texts.iter().for_each(|&(k, text)| out.table.attributes.texts[k].push(text));
            out.rows += 1;
        }
        end
    }

    #[inline]
    fn fields<'t>(
        &self,
        text: &'t [u8],
        start: usize,
        dialect: &Dialect,
        texts: &mut Vec<(usize, &'t str)>,
        out: &mut Columns,
        [floats, ints]: [usize; 2],
    ) -> Option<usize> {
        let (mut at, mut targets) = (start, self.targets.iter());
        let mut next = targets.next();
        for column in 0..self.width {
            let target = next.filter(|t| t.0 == column).map(|t| t.1);
            if target.is_some() {
                next = targets.next();
            }
            let rest = &text[at..];
            let length = match target {
                Some(Target::Float(_) | Target::Weight) => {
                    let (value, length) = leading_f32(rest)?;
                    match target {
                        Some(Target::Float(k)) => {
                            out.table.attributes.floats[floats + k] = value;
                        }
                        _ => out.table.weights.as_mut()?.push(value),
                    }
                    length
                }
                None | Some(Target::Text(_)) => {
                    if !rest.is_empty() && rest.first() == self.quote.as_ref() {
                        return None;
                    }
                    let length = dialect.plain_length(rest)?;
                    if let Some(Target::Text(k)) = target {
                        texts.push((k, std::str::from_utf8(&rest[..length]).ok()?));
                    }
                    length
                }
                Some(number) => {
                    let (value, length) = leading_i64(rest)?;
                    match number {
                        Target::Id(k) => match &mut out.ids[k] {
                            Ids::Int(ids) => ids.push(value),
                            Ids::Text(_) => return None,
                        },
                        Target::Label => out.table.labels.as_mut()?.push(value),
                        Target::Time => out.table.timestamps.as_mut()?.push(value),
                        Target::Int(k) => out.table.attributes.ints[ints + k] = value,
                        _ => return None,
                    }
                    length
                }
            };
            at += length;
            let last = column + 1 == self.width;
            match *text.get(at)? {
                b if b == self.delimiter && !last => at += 1,
                b'\n' if last => at += 1,
                b'\r' if last && text.get(at + 1) == Some(&b'\n') => at += 2,
                _ => return None,
            }
        }
        Some(at)
    }
}

/// Line of row `row` of a file that could be read before.
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

impl Csv {
    /// Where the columns stand, in the order in which rows are parsed; then those of the attributes. `line` is that of
    /// the names.
    pub(super) fn header<'h>(
        &self,
        path: &Path,
        line: u64,
        head: impl Iterator<Item = Cow<'h, [u8]>> + Clone,
        ids: &[&'static str],
        decoder: &Decoder,
    ) -> Result<(Header, Vec<usize>), DataError> {
        if self.attributes.len() != decoder.attr_types.len() {
            let message = format!(
                "expected one name for each of {} attributes, got {}",
                decoder.attr_types.len(),
                self.attributes.len()
            );
            return Err(decoder_error("csv.attributes", message));
        }
        let or = |name: &'static str, own: &'_ Option<String>| own.clone().unwrap_or(name.into());
        let optional = [
            (decoder.weighted, "weight", or("weight", &self.weight)),
            (decoder.labeled, "label", or("label", &self.label)),
            (decoder.timestamped, "timestamp", or("timestamp", &self.timestamp)),
        ];
        // The first two places of each name that is asked for.
        let mut places: HashMap<&[u8], [Option<usize>; 2]> = HashMap::new();
        let asked =
            [&self.id, &self.src, &self.dst].into_iter().chain(optional.iter().map(|o| &o.2));
        places.extend(asked.chain(&self.attributes).map(|name| (name.as_bytes(), [None; 2])));
        for (i, name) in head.clone().enumerate() {
            if let Some(free) = places
                .get_mut(&*name)
                .and_then(|found| found.iter_mut().find(|place| place.is_none()))
            {
                *free = Some(i);
            }
        }
        let find = |name: &str| match places[name.as_bytes()] {
            [Some(i), None] => Ok(i),
            [None, _] => {
                let first = head.clone().next().unwrap_or_default();
                if head.clone().count() <= 1 && first.is_empty() {
                    let expected = Expected::from(format!("a header with a column `{name}`"));
                    return Err(table_error(path, line, 0, expected, "an empty file"));
                }
                let utf16 = first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]);
                let other = head.clone().count() == 1 && first.iter().any(|b| b";\t|,".contains(b));
                let remedy = match (utf16, other) {
                    (true, _) => "the file is in UTF-16: write it as UTF-8",
                    (_, true) => "`Csv::with_delimiter` reads another character between fields",
                    _ => {
                        "the methods of `Csv` name the columns; names are compared with their spaces"
                    }
                };
                let found: Vec<String> = head
                    .clone()
                    .take(MOST)
                    .map(|name| format!("`{}`", String::from_utf8_lossy(&name)))
                    .collect();
                let expected = Expected::from(format!("a column `{name}`")).or(remedy);
                Err(table_error(path, line, 0, expected, &found.join(", ")))
            }
            [_, Some(i)] => {
                Err(table_error(path, line, i + 1, format!("one column `{name}`"), name))
            }
        };
        let (mut names, mut positions) = (vec![], vec![]);
        for &id in ids {
            names.push(id);
            positions.push(find(match id {
                "id" => &self.id,
                "src_id" => &self.src,
                _ => &self.dst,
            })?);
        }
        for (_, name, column) in optional.iter().filter(|o| o.0) {
            names.push(name);
            positions.push(find(column)?);
        }
        let attributes = self.attributes.iter().map(|n| find(n)).collect::<Result<_, _>>()?;
        let narrow = vec![false; names.len()];
        let is_text = |&id: &&str| {
            self.text_ids
                || match id {
                    "src_id" => self.text_src_ids,
                    "dst_id" => self.text_dst_ids,
                    _ => false,
                }
        };
        let text_ids = ids.iter().map(is_text).collect();
        Ok((Header { names, narrow, positions, text_ids }, attributes))
    }
}
