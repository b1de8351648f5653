//! Parses the rows of a block of a table into columns.

use burn_gnn_graph::{Ids, Texts};
use hashbrown::{HashMap, HashSet};

use super::attributes::{AttributeReader, Attributes};
use super::blocks::lines;
use super::decoder::Decoder;
use super::header::Header;
use super::parse_number::{parse_f32, parse_i64};
use crate::files::{Cut, Expected};

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

/// A number with a point, as `1.0`.
fn is_float(text: &[u8]) -> bool {
    text.contains(&b'.') && parse_f32(text).is_some()
}

/// Numbers of labels that are texts; those of empty ones as the decoder says.
pub(crate) fn number_labels(texts: &Texts, decoder: &Decoder) -> Vec<i64> {
    let (names, empty) = (class_names(texts), decoder.empty_label.unwrap_or(-1));
    let number: HashMap<&str, i64> = names.iter().map(|n| &**n).zip(0..).collect();
    texts.iter().map(|n| number.get(n).copied().unwrap_or(empty)).collect()
}

/// The columns of some rows of a table.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    /// One column in node tables, two in edge tables.
    pub(crate) ids: Vec<Ids>,
    pub(crate) weights: Vec<f32>,
    pub(crate) labels: Vec<i64>,
    /// Labels that are texts, until all of them are numbered.
    pub(crate) label_texts: Texts,
    pub(crate) timestamps: Vec<i64>,
    pub(crate) attributes: Attributes,
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

/// What to do about an empty field that should be a number.
pub(crate) const EMPTY_NUMBER: &str = "`Decoder::empty_as_zero` reads an empty number as 0";
/// What to do about a date that should be a number.
pub(crate) const NUMBER_TIMES: &str = "write times as whole numbers, such as seconds since 1970";
/// What to do about an empty field that should be a class.
pub(crate) const EMPTY_LABEL: &str =
    "`Decoder::empty_label_as(-1)` reads an empty label as no class";
/// What to do about texts where ids of the other table are numbers.
pub(crate) const NUMBER_IDS: &str =
    "read the ids of both tables as numbers, or both by `Csv::with_text_ids`";
/// What to do about texts where classes are expected.
pub(crate) const TEXT_LABELS: &str = "`Decoder::text_labels` numbers labels that are texts";
/// What to do about `1.0` where whole numbers are expected.
pub(crate) const WHOLE_AS_FLOAT: &str = "write whole numbers without a point (pandas writes a column with gaps as floats: convert it to `Int64`)";
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
        let attributes = Attributes::empty(decoder);
        Self {
            rows: 0,
            ids,
            weights: vec![],
            labels: vec![],
            label_texts: Texts::new(),
            timestamps: vec![],
            attributes,
            problems: vec![],
        }
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
                .read(text, &mut self.attributes)
                .map_err(|(expected, found)| (at, expected, found.into()))?;
        }
        if fields.next().is_some() { Err(whole()) } else { Ok(()) }
    }

    /// Parses ids, weight, label and timestamp; `next` gives the fields in this order, by their place in it.
    pub(crate) fn lead<'l>(
        &mut self,
        header: &Header,
        decoder: &Decoder,
        mut next: impl FnMut(usize) -> Result<&'l [u8], Wrong>,
    ) -> Result<(), Wrong> {
        let mut place = 0;
        let mut next = || {
            place += 1;
            next(place - 1).map(|text| (place - 1, text))
        };
        let wrong = |k: usize, kind: &str, remedy: &'static str, text: &'l [u8]| -> Wrong {
            let expected = Expected::from(format!("{kind} (`{}`)", header.names[k]));
            (header.positions[k] + 1, expected.or(remedy), text.into())
        };
        // `empty` is what an empty field is, `remedy` what to do about a field that is no number.
        let int = |(k, text): (usize, &'l [u8]), empty: Option<i64>, remedy: &'static str| {
            if let Some(value) = empty.filter(|_| text.is_empty()) {
                return Ok(value);
            }
            match (parse_i64(text), header.narrow[k]) {
                (Some(v), true) if i32::try_from(v).is_err() => {
                    let remedy = "declare the column `int64` in the header";
                    Err(wrong(k, "an int32", remedy, text))
                }
                (Some(v), _) => Ok(v),
                (None, narrow) => {
                    Err(wrong(k, if narrow { "an int32" } else { "an int64" }, remedy, text))
                }
            }
        };
        let if_empty = |text: &[u8], remedy| if text.is_empty() { remedy } else { "" };
        for ids in &mut self.ids {
            let (k, text) = next()?;
            match ids {
                Ids::Int(ids) => {
                    let remedy = match text {
                        b"" => "",
                        _ if is_float(text) => WHOLE_AS_FLOAT,
                        _ => TEXT_IDS,
                    };
                    ids.push(int((k, text), None, remedy)?);
                }
                Ids::Text(_) if text.is_empty() => {
                    return Err(wrong(k, "a text that is not empty", "", text));
                }
                Ids::Text(ids) => ids
                    .push(std::str::from_utf8(text).map_err(|_| wrong(k, "UTF-8 text", "", text))?),
            }
        }
        let zero = decoder.empty_as_zero.then_some(0);
        if decoder.weighted {
            let (k, text) = next()?;
            self.weights.push(if zero.is_some() && text.is_empty() {
                0.0
            } else {
                let remedy = if_empty(text, EMPTY_NUMBER);
                parse_f32(text).ok_or_else(|| wrong(k, "a float", remedy, text))?
            });
        }
        if decoder.text_labels {
            let (k, text) = next()?;
            let text = std::str::from_utf8(text).map_err(|_| wrong(k, "UTF-8 text", "", text))?;
            self.label_texts.push(text);
        } else if decoder.labeled {
            let (k, text) = next()?;
            let remedy = match text {
                b"" => EMPTY_LABEL,
                _ if is_float(text) => WHOLE_AS_FLOAT,
                _ => TEXT_LABELS,
            };
            self.labels.push(int((k, text), decoder.empty_label, remedy)?);
        }
        if decoder.timestamped {
            let (k, text) = next()?;
            let remedy = if text.is_empty() { EMPTY_NUMBER } else { NUMBER_TIMES };
            self.timestamps.push(int((k, text), zero, remedy)?);
        }
        Ok(())
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.rows += other.rows;
        for (a, b) in self.ids.iter_mut().zip(&other.ids) {
            match (a, b) {
                (Ids::Int(a), Ids::Int(b)) => a.extend_from_slice(b),
                (Ids::Text(a), Ids::Text(b)) => a.append(b),
                // Files of one source have ids of one kind; see `read`.
                _ => unreachable!("columns of ids of two kinds"),
            }
        }
        self.weights.extend_from_slice(&other.weights);
        self.labels.extend_from_slice(&other.labels);
        self.label_texts.append(&other.label_texts);
        self.timestamps.extend_from_slice(&other.timestamps);
        self.attributes.append(&other.attributes);
    }
}
