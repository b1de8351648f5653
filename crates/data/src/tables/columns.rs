//! Parses the rows of a block of a table into columns.

use burn_gnn_graph::{Ids, Texts};

use super::attributes::{AttributeReader, Attributes};
use super::blocks::trim_end;
use super::decoder::Decoder;
use super::header::Header;
use super::parse_number::{parse_f32, parse_i64};
use crate::files::Cut;

/// The columns of some rows of a table.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    /// One column in node tables, two in edge tables.
    pub(crate) ids: Vec<Ids>,
    pub(crate) weights: Vec<f32>,
    pub(crate) labels: Vec<i64>,
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
    pub(crate) expected: String,
    pub(crate) found: Cut,
}

/// Field (from 1, 0 for all), what was expected, what was found.
pub(crate) type Wrong<'a> = (usize, String, &'a [u8]);

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
            timestamps: vec![],
            attributes,
            problems: vec![],
        }
    }

    /// The rows of a block of whole lines; stops at the `most`-th problem.
    pub(crate) fn parse(block: &[u8], header: &Header, decoder: &Decoder, most: usize) -> Self {
        let mut out = Self::empty(header, decoder);
        let reader = AttributeReader::new(decoder);
        let mut rest = block;
        while !rest.is_empty() && out.problems.len() < most {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
            let (line, after) = rest.split_at(end);
            rest = after;
            let row = out.row(trim_end(line), header, decoder, &reader);
            out.end_row(row, None);
        }
        out
    }

    /// Counts a row, and what is wrong with it; `line` where the row does not contain it.
    pub(crate) fn end_row(&mut self, row: Result<(), Wrong<'_>>, line: Option<u64>) {
        if let Err((field, expected, found)) = row {
            self.problems.push(Problem {
                row: self.rows,
                line,
                field,
                expected,
                found: found.into(),
            });
        }
        self.rows += 1;
    }

    /// Parses one line onto the ends of the columns; after an error some of them hold the row and some do not.
    fn row<'l>(
        &mut self,
        line: &'l [u8],
        header: &Header,
        decoder: &Decoder,
        reader: &AttributeReader<'_>,
    ) -> Result<(), Wrong<'l>> {
        let whole = || (0, format!("{} tab-separated fields", header.len()), line);
        if line.is_empty() {
            return Err(whole());
        }
        let mut fields = line.split(|&b| b == b'\t');
        self.lead(header, decoder, |_| fields.next().ok_or_else(whole))?;
        if !decoder.attr_types.is_empty() {
            let (at, raw) = (header.len(), fields.next().ok_or_else(whole)?);
            let text = std::str::from_utf8(raw)
                .map_err(|_| (at, "UTF-8 text (`attributes`)".to_owned(), raw))?;
            reader
                .read(text, &mut self.attributes)
                .map_err(|(expected, found)| (at, expected, found.as_bytes()))?;
        }
        if fields.next().is_some() { Err(whole()) } else { Ok(()) }
    }

    /// Parses ids, weight, label and timestamp; `next` gives the fields in this order, by their place in it.
    pub(crate) fn lead<'l>(
        &mut self,
        header: &Header,
        decoder: &Decoder,
        mut next: impl FnMut(usize) -> Result<&'l [u8], Wrong<'l>>,
    ) -> Result<(), Wrong<'l>> {
        let mut place = 0;
        let mut next = || {
            place += 1;
            next(place - 1).map(|text| (place - 1, text))
        };
        let wrong = |k: usize, kind: &str, text: &'l [u8]| {
            (header.positions[k] + 1, format!("{kind} (`{}`)", header.names[k]), text)
        };
        let int = |(k, text): (usize, &'l [u8]), default: bool| {
            if default && text.is_empty() {
                return Ok(0);
            }
            let narrow = header.narrow[k];
            let value = parse_i64(text).filter(|&v| !narrow || i32::try_from(v).is_ok());
            value.ok_or_else(|| wrong(k, if narrow { "an int32" } else { "an int64" }, text))
        };
        for ids in &mut self.ids {
            let (k, text) = next()?;
            match ids {
                Ids::Int(ids) => ids.push(int((k, text), false)?),
                Ids::Text(ids) => {
                    ids.push(std::str::from_utf8(text).map_err(|_| wrong(k, "UTF-8 text", text))?)
                }
            }
        }
        if decoder.weighted {
            let (k, text) = next()?;
            let zero = decoder.empty_as_zero && text.is_empty();
            self.weights.push(if zero {
                0.0
            } else {
                parse_f32(text).ok_or_else(|| wrong(k, "a float", text))?
            });
        }
        if decoder.labeled {
            self.labels.push(int(next()?, decoder.empty_as_zero)?);
        }
        if decoder.timestamped {
            self.timestamps.push(int(next()?, decoder.empty_as_zero)?);
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
        self.timestamps.extend_from_slice(&other.timestamps);
        self.attributes.append(&other.attributes);
    }
}
