//! Parses the rows of a block of a table into columns.

use burn_gnn_graph::{Ids, Texts};
use hashbrown::{HashMap, HashSet};

use super::attributes::{AttributeReader, Attributes};
use super::blocks::lines;
use super::decoder::Decoder;
use super::header::Header;
use super::parse_number::{parse_f32, parse_i64};
use crate::files::{Cut, Expected};
use crate::host_column::pick_rows;

/// The names of classes, by number, of the labels of a table ([`Decoder::text_labels`]): the texts that are not empty,
/// each once, in ascending order of bytes. Of all rows: those of a subgraph may lack a class.
///
/// # Cost
/// `O(rows + classes log classes)`.
pub fn class_names(labels: &Texts) -> Vec<String> {
    let names: HashSet<&str> = labels.iter().filter(|name| !name.is_empty()).collect();
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// What a table says of each row beside its ids.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// Weights.
    pub weights: Option<Vec<f32>>,
    /// Labels.
    pub labels: Option<Vec<i64>>,
    /// Names of classes, empty for none, where labels are texts ([`Decoder::text_labels`]).
    pub label_texts: Option<Texts>,
    /// Timestamps.
    pub timestamps: Option<Vec<i64>>,
    /// Attributes.
    pub attributes: Attributes,
}

impl TableColumns {
    /// The columns that the decoder asks for, without rows; labels that are texts have no numbers yet.
    fn empty(decoder: &Decoder) -> Self {
        Self {
            weights: decoder.weighted.then(Vec::new),
            labels: (decoder.labeled && !decoder.text_labels).then(Vec::new),
            label_texts: decoder.text_labels.then(Texts::new),
            timestamps: decoder.timestamped.then(Vec::new),
            attributes: Attributes::empty(decoder),
        }
    }
    fn append(&mut self, other: &Self) {
        fn join<T: Copy>(column: &mut Option<Vec<T>>, more: &Option<Vec<T>>) {
            column.iter_mut().zip(more).for_each(|(column, more)| column.extend_from_slice(more));
        }
        join(&mut self.weights, &other.weights);
        join(&mut self.labels, &other.labels);
        join(&mut self.timestamps, &other.timestamps);
        self.label_texts.iter_mut().zip(&other.label_texts).for_each(|(a, b)| a.append(b));
        self.attributes.append(&other.attributes);
    }
    /// Numbers labels that are texts; those of empty ones as the decoder says.
    pub(super) fn number_labels(&mut self, decoder: &Decoder) {
        if let Some(texts) = &self.label_texts {
            let (names, empty) = (class_names(texts), decoder.empty_label.unwrap_or(-1));
            let number: HashMap<&str, i64> = names.iter().map(|n| &**n).zip(0..).collect();
            let number = |name: &str| number.get(name).copied().unwrap_or(empty);
            self.labels = Some(texts.iter().map(number).collect());
        }
    }
    /// Adds a row of which nothing is known.
    pub(crate) fn push_missing(&mut self, decoder: &Decoder) {
        self.weights.as_mut().into_iter().for_each(|w| w.push(0.0));
        self.labels.as_mut().into_iter().for_each(|l| l.push(-1));
        self.label_texts.as_mut().into_iter().for_each(|l| l.push(""));
        self.timestamps.as_mut().into_iter().for_each(|t| t.push(-1));
        self.attributes.push_missing(decoder);
    }
    /// Keeps these of `count` rows, in this order.
    pub(super) fn keep(&mut self, count: usize, rows: &[u32]) {
        fn pick<T: Copy>(column: &mut Option<Vec<T>>, rows: &[u32]) {
            if let Some(v) = column {
                *v = pick_rows(v, rows, 1);
            }
        }
        pick(&mut self.weights, rows);
        pick(&mut self.labels, rows);
        pick(&mut self.timestamps, rows);
        if let Some(texts) = &mut self.label_texts {
            *texts = texts.select(rows.iter().map(|&r| r as usize));
        }
        self.attributes = self.attributes.select(count, rows);
    }
}

/// The columns of some rows of a table.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    /// One column in node tables, two in edge tables.
    pub(crate) ids: Vec<Ids>,
    pub(crate) table: TableColumns,
    pub(crate) problems: Vec<Problem>,
}

/// What is wrong with a row.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Row in these columns.
    pub(crate) row: usize,
    /// Line of the file, where rows are not lines.
    pub(crate) line: Option<u64>,
    /// Field, from 1; 0 for the whole line.
    pub(crate) field: usize,
    pub(crate) expected: Expected,
    pub(crate) found: Cut,
}

/// Field (from 1, 0 for all), what was expected, what was found.
pub(crate) type Wrong = (usize, Expected, Cut);

/// A column that stands before the attributes.
#[derive(Clone, Copy)]
pub(crate) enum LeadingColumn {
    Id,
    Weight,
    Label,
    Time,
}

/// A field of a row: bytes of a text, or the value of a file with types.
pub(crate) trait Field: Copy {
    /// Whether nothing is there.
    fn is_empty(self) -> bool;
    /// The integer that it is, if it is one.
    fn int(self) -> Option<i64>;
    fn float(self) -> Option<f32>;
    /// Bytes that should be UTF-8, none where nothing is there; `None` for another type.
    fn bytes(&self) -> Option<&[u8]>;
    /// What to do about a field that is not the number that a column should have.
    fn remedy(self, column: LeadingColumn) -> &'static str;
    /// As errors show it.
    fn found(self) -> Cut;
}

impl Field for &[u8] {
    fn is_empty(self) -> bool {
        <[u8]>::is_empty(self)
    }
    fn int(self) -> Option<i64> {
        parse_i64(self)
    }
    fn float(self) -> Option<f32> {
        parse_f32(self)
    }
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
    fn remedy(self, column: LeadingColumn) -> &'static str {
        match (column, self) {
            (LeadingColumn::Id, b"") => "",
            (LeadingColumn::Weight | LeadingColumn::Time, b"") => EMPTY_NUMBER,
            (LeadingColumn::Label, b"") => EMPTY_LABEL,
            // A number with a point, as `1.0`.
            (LeadingColumn::Id | LeadingColumn::Label, text)
                if text.contains(&b'.') && parse_f32(text).is_some() =>
            {
                WHOLE_AS_FLOAT
            }
            (LeadingColumn::Id, _) => TEXT_IDS,
            (LeadingColumn::Weight, _) => "",
            (LeadingColumn::Label, _) => TEXT_LABELS,
            (LeadingColumn::Time, _) => NUMBER_TIMES,
        }
    }
    fn found(self) -> Cut {
        self.into()
    }
}

/// What to do about an empty field that should be a number.
pub(crate) const EMPTY_NUMBER: &str = "`Decoder::empty_as_zero` reads an empty number as 0";
/// What to do about a date that should be a number.
const NUMBER_TIMES: &str = "write times as whole numbers, such as seconds since 1970";
/// What to do about an empty field that should be a class.
pub(crate) const EMPTY_LABEL: &str =
    "`Decoder::empty_label_as(-1)` reads an empty label as no class";
/// What to do about texts where ids of the other table are numbers.
pub(crate) const NUMBER_IDS: &str =
    "read the ids of both tables as numbers, or both by `Csv::with_text_ids`";
/// What to do about texts where classes are expected.
pub(crate) const TEXT_LABELS: &str = "`Decoder::text_labels` numbers labels that are texts";
/// What to do about `1.0` where whole numbers are expected.
const WHOLE_AS_FLOAT: &str = "write whole numbers without a point (pandas writes a column with gaps as floats: convert it to `Int64`)";
/// What to do about texts where numbers are expected as ids.
pub(crate) const TEXT_IDS: &str = "`Csv::with_text_ids` reads ids that are texts (`with_text_src_ids`, `with_text_dst_ids` \
     those of one endpoint), in GraphLearn's format `:string` in the header";

impl Columns {
    pub(crate) fn empty(header: &Header, decoder: &Decoder) -> Self {
        let ids = header
            .text_ids
            .iter()
            .map(|&text| if text { Ids::Text(Texts::new()) } else { Ids::Int(vec![]) })
            .collect();
        Self { rows: 0, ids, table: TableColumns::empty(decoder), problems: vec![] }
    }

    /// The rows of a block of whole lines; stops at the `most`-th problem.
    pub(crate) fn parse(block: &[u8], header: &Header, decoder: &Decoder, most: usize) -> Self {
        let mut out = Self::empty(header, decoder);
        let reader = AttributeReader::new(decoder);
        let mut lines = lines(block);
        while out.problems.len() < most
            && let Some(line) = lines.next()
        {
            let row = out.row(line, header, decoder, &reader);
            out.end_row(row, None);
        }
        out
    }

    /// Counts a row, and what is wrong with it; `line` where the row does not contain it.
    pub(crate) fn end_row(&mut self, row: Result<(), Wrong>, line: Option<u64>) {
        if let Err((field, expected, found)) = row {
            self.problems.push(Problem { row: self.rows, line, field, expected, found });
        }
        self.rows += 1;
    }

    /// Parses one line onto the ends of the columns; after an error some of them hold the row and some do not.
    fn row(
        &mut self,
        line: &[u8],
        header: &Header,
        decoder: &Decoder,
        reader: &AttributeReader<'_>,
    ) -> Result<(), Wrong> {
        let whole = || (0, format!("{} tab-separated fields", header.len()).into(), line.into());
        if line.is_empty() {
            return Err(whole());
        }
        let mut fields = line.split(|&b| b == b'\t');
        self.lead(header, decoder, |_| fields.next().ok_or_else(whole))?;
        if !decoder.attr_types.is_empty() {
            let (at, raw) = (header.len(), fields.next().ok_or_else(whole)?);
            let text = std::str::from_utf8(raw)
                .map_err(|_| (at, "UTF-8 text (`attributes`)".into(), raw.into()))?;
            reader
                .read(text, &mut self.table.attributes)
                .map_err(|(expected, found)| (at, expected, found.into()))?;
        }
        if fields.next().is_some() { Err(whole()) } else { Ok(()) }
    }

    /// Parses ids, weight, label and timestamp; `next` gives the fields in this order, by their place in it.
    pub(crate) fn lead<F: Field>(
        &mut self,
        header: &Header,
        decoder: &Decoder,
        mut next: impl FnMut(usize) -> Result<F, Wrong>,
    ) -> Result<(), Wrong> {
        let mut place = 0;
        let mut next = || {
            place += 1;
            next(place - 1).map(|field| (place - 1, field))
        };
        let wrong = |k: usize, kind: &str, remedy: &'static str, field: F| -> Wrong {
            let expected = Expected::from(kind).of_column(header.names[k]).or(remedy);
            (header.positions[k] + 1, expected, field.found())
        };
        // `empty` is what an empty field is.
        let int = |(k, field): (usize, F), column: LeadingColumn, empty: Option<i64>| {
            if let Some(value) = empty.filter(|_| field.is_empty()) {
                return Ok(value);
            }
            let kind = if header.narrow[k] { "an int32" } else { "an int64" };
            match field.int() {
                Some(v) if header.narrow[k] && i32::try_from(v).is_err() => {
                    Err(wrong(k, kind, "declare the column `int64` in the header", field))
                }
                Some(v) => Ok(v),
                None => Err(wrong(k, kind, field.remedy(column), field)),
            }
        };
        for ids in &mut self.ids {
            match ids {
                Ids::Int(ids) => ids.push(int(next()?, LeadingColumn::Id, None)?),
                Ids::Text(ids) => {
                    let (k, field) = next()?;
                    let text = field.bytes().filter(|text| !text.is_empty());
                    let text =
                        text.ok_or_else(|| wrong(k, "a text that is not empty", "", field))?;
                    let utf8 = std::str::from_utf8(text);
                    ids.push(utf8.map_err(|_| wrong(k, "UTF-8 text", "", field))?);
                }
            }
        }
        let zero = decoder.empty_as_zero.then_some(0);
        let table = &mut self.table;
        if let Some(weights) = &mut table.weights {
            let (k, field) = next()?;
            weights.push(if zero.is_some() && field.is_empty() {
                0.0
            } else {
                let remedy = || field.remedy(LeadingColumn::Weight);
                field.float().ok_or_else(|| wrong(k, "a float", remedy(), field))?
            });
        }
        if let Some(texts) = &mut table.label_texts {
            let (k, field) = next()?;
            let text = field.bytes().ok_or_else(|| wrong(k, "a text", "", field))?;
            let utf8 = std::str::from_utf8(text);
            texts.push(utf8.map_err(|_| wrong(k, "UTF-8 text", "", field))?);
        } else if let Some(labels) = &mut table.labels {
            labels.push(int(next()?, LeadingColumn::Label, decoder.empty_label)?);
        }
        if let Some(timestamps) = &mut table.timestamps {
            timestamps.push(int(next()?, LeadingColumn::Time, zero)?);
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.rows += other.rows;
        self.ids.iter_mut().zip(&other.ids).for_each(|(a, b)| append_ids(a, b));
        self.table.append(&other.table);
    }
}

/// Appends ids of the same kind.
pub(crate) fn append_ids(ids: &mut Ids, more: &Ids) {
    match (ids, more) {
        (Ids::Int(ids), Ids::Int(more)) => ids.extend_from_slice(more),
        (Ids::Text(ids), Ids::Text(more)) => ids.append(more),
        // Files of one source have ids of one kind (see `read`), as have blocks of an edge list.
        _ => unreachable!("columns of ids of two kinds"),
    }
}
