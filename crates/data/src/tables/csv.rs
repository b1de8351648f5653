//! Reads CSV files with a header; columns by name.

use std::io::Read;
use std::path::Path;

use burn_gnn_files::DataError;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::attributes::AttributeReader;
use super::blocks::text;
use super::columns::Columns;
use super::decoder::Decoder;
use super::header::Header;
use super::line_starts::LineStarts;
use super::options::ReadOptions;
use super::source::Piece;
use crate::files::{Cut, Expected, Progress, decoder_error, format_error, table_error, text_error};

/// Which columns of a CSV file with a header a [`Decoder`] reads, by name. Quotes and line ends inside quotes are as in
/// RFC 4180; a byte order mark at the start is skipped. Columns that are not named are not read.
///
/// A Parquet file (feature `parquet`), detected from its first bytes, is read by the same names: its ids are texts if
/// their column holds texts, whatever [`text_ids`](Self::text_ids) says, a null is an empty field, a time is a number
/// in the unit of its column, and lines in errors are rows, counted from 1. Its columns must not be lists.
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
/// # Ok::<(), burn_gnn_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Csv {
    /// Between fields; an ASCII character. A comma by default.
    pub delimiter: char,
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

impl Default for Csv {
    fn default() -> Self {
        Self {
            delimiter: ',',
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
    /// With another character between fields.
    #[must_use]
    pub fn with_delimiter(mut self, delimiter: char) -> Self {
        self.delimiter = delimiter;
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

    fn reader(
        &self,
        path: &Path,
        options: &ReadOptions,
        bar: &Progress,
    ) -> Result<CsvFile, DataError> {
        let Some(delimiter) = u8::try_from(self.delimiter).ok().filter(u8::is_ascii) else {
            let message = format!("expected an ASCII character, got {:?}", self.delimiter);
            return Err(decoder_error("csv.delimiter", message));
        };
        CsvFile::new(path, delimiter, text(path, options.max_expansion, bar)?)
    }
}

/// A CSV file whose first record has been read.
pub(crate) struct CsvFile {
    reader: ::csv::Reader<LineStarts<Box<dyn Read + Send>>>,
    /// The names of the columns. Read as any other record: the reader would keep them three times.
    pub(crate) head: ::csv::ByteRecord,
    /// The line that they begin in.
    pub(crate) head_line: u64,
    record: ::csv::ByteRecord,
}

impl CsvFile {
    pub(crate) fn new(
        path: &Path,
        delimiter: u8,
        text: Box<dyn Read + Send>,
    ) -> Result<Self, DataError> {
        let mut reader = ::csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(LineStarts::new(text));
        // One that has headers gives the first record as any other, and keeps no copies of it.
        reader.set_byte_headers(::csv::ByteRecord::new());
        let mut file = Self {
            reader,
            head: ::csv::ByteRecord::new(),
            head_line: 1,
            record: ::csv::ByteRecord::new(),
        };
        let first = file.next(path)?.map(|(_, line)| line);
        if let Some(line) = first {
            std::mem::swap(&mut file.head, &mut file.record);
            file.head_line = line;
        }
        Ok(file)
    }
    /// The next record, and the line that it begins in.
    pub(crate) fn next(
        &mut self,
        path: &Path,
    ) -> Result<Option<(&::csv::ByteRecord, u64)>, DataError> {
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {
                let from = self.record.position().map_or(0, ::csv::Position::byte);
                Ok(Some((&self.record, self.reader.get_mut().line_at(from))))
            }
            Ok(false) => Ok(None),
            Err(e) => Err(match e.into_kind() {
                ::csv::ErrorKind::Io(e) => text_error(path, e),
                other => format_error(path, format!("{other:?}")),
            }),
        }
    }
}

/// Fields of a row that are looked at for an error: more than it shows.
const MOST: usize = 100;

/// The first fields of a row, as errors show them.
pub(crate) fn joined<'a>(fields: impl Iterator<Item = &'a [u8]>, between: &str) -> String {
    fields.take(MOST).map(String::from_utf8_lossy).collect::<Vec<_>>().join(between)
}

/// A file row by row; a record may have several lines, so the line of each row is looked up when an error needs it.
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
    let mut file = csv.reader(path, options, bar)?;
    let (header, attributes) = csv.header(path, file.head_line, file.head.iter(), ids, decoder)?;
    let width = file.head.len();
    let mut out = Columns::empty(&header, decoder);
    let attribute_reader = AttributeReader::new(decoder);
    while out.problems.len() < options.max_problems
        && let Some((record, line)) = file.next(path)?
    {
        let field = |k: usize| record.get(header.positions[k]).unwrap_or(b"");
        let whole = || {
            let expected = Expected::from(format!("{width} fields, not {}", record.len()));
            let found = joined(record.iter(), &csv.delimiter.to_string());
            let remedy = if record.len() > width {
                "quote fields that hold the delimiter"
            } else {
                "complete the row; an empty field is nothing between two delimiters"
            };
            (0, expected.or(remedy), Cut::from(&found))
        };
        let row = if record.len() == width {
            out.lead(&header, decoder, |k| Ok(field(k)))
        } else {
            Err(whole())
        };
        let row = row.and_then(|()| {
            for (i, &at) in attributes.iter().enumerate() {
                let raw = record.get(at).unwrap_or(b"");
                let wrong = |e: Expected| (at + 1, e.of_column(&csv.attributes[i]), Cut::from(raw));
                let text = std::str::from_utf8(raw).map_err(|_| wrong("UTF-8 text".into()))?;
                attribute_reader.push(i, text, &mut out.table.attributes).map_err(wrong)?;
            }
            Ok(())
        });
        out.end_row(row, Some(line));
    }
    Ok((header, vec![out]))
}

/// Line of row `row` of a file that could be read before.
pub(crate) fn csv_line(path: &Path, csv: &Csv, row: usize) -> u64 {
    let options = ReadOptions { max_expansion: u32::MAX, ..ReadOptions::default() };
    let Ok(mut file) = csv.reader(path, &options, &Progress::hidden()) else { return 0 };
    for _ in 0..row {
        if !file.next(path).is_ok_and(|record| record.is_some()) {
            return 0;
        }
    }
    file.next(path).ok().flatten().map_or(0, |(_, line)| line)
}

impl Csv {
    /// Where the columns stand, in the order in which rows are parsed; then those of the attributes. `line` is that of
    /// the names.
    pub(super) fn header<'h>(
        &self,
        path: &Path,
        line: u64,
        head: impl Iterator<Item = &'h [u8]> + Clone,
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
                .get_mut(name)
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
                    .map(|name| format!("`{}`", String::from_utf8_lossy(name)))
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
