//! Parses the rows of a block of a table into columns.

use burn_gnn_graph::{Ids, Texts};
use hashbrown::{HashMap, HashSet};

use super::attributes::{AttributeReader, Attributes};
use super::field::{Field, LeadingColumn, Notation, OTHER_ENCODING, ROUND, TextField, remedy_of};
use super::header::Header;
use crate::columns::host_column::pick_rows;
use crate::columns::narrow::rounded;
use crate::files::{Cut, Expected};
use crate::tables::schema::decoder::Decoder;
use crate::tables::text::blocks::lines;

/// The names of the classes of a table whose labels are texts ([`Decoder::text_labels`]), by class number: the distinct
/// texts that are not empty, in ascending order of bytes. Pass the labels of all rows: a subgraph may lack a class.
///
/// # Cost
/// `O(rows + classes log classes)`.
pub fn class_names(labels: &Texts) -> Vec<String> {
    let names: HashSet<&str> = labels.iter().filter(|name| !name.is_empty()).collect();
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// The columns of a table other than its ids.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// Weights.
    pub weights: Option<Vec<f32>>,
    /// Labels.
    pub labels: Option<Vec<i64>>,
    /// Names of classes, if labels are texts ([`Decoder::text_labels`]); empty for no class.
    pub label_texts: Option<Texts>,
    /// Timestamps.
    pub timestamps: Option<Vec<i64>>,
    /// Attributes.
    pub attributes: Attributes,
}

impl TableColumns {
    /// The columns of a decoder, without rows. Labels that are texts get their numbers after the last row.
    fn empty(decoder: &Decoder) -> Self {
        Self {
            weights: decoder.weighted.then(Vec::new),
            labels: (decoder.labeled && !decoder.text_labels).then(Vec::new),
            label_texts: decoder.text_labels.then(Texts::new),
            timestamps: decoder.timestamped.then(Vec::new),
            attributes: Attributes::empty(decoder),
        }
    }
    fn reserve(&mut self, rows: usize) {
        self.weights.iter_mut().for_each(|v| v.reserve_exact(rows));
        self.labels.iter_mut().for_each(|v| v.reserve_exact(rows));
        self.timestamps.iter_mut().for_each(|v| v.reserve_exact(rows));
    }
    fn shrink(&mut self) {
        self.weights.iter_mut().for_each(Vec::shrink_to_fit);
        self.labels.iter_mut().for_each(Vec::shrink_to_fit);
        self.timestamps.iter_mut().for_each(Vec::shrink_to_fit);
        self.attributes.floats.shrink_to_fit();
        self.attributes.doubles.shrink_to_fit();
        self.attributes.ints.shrink_to_fit();
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
    /// Numbers labels that are texts. Empty ones get [`Decoder::empty_label`], by default -1.
    pub(crate) fn number_labels(&mut self, decoder: &Decoder) {
        if let Some(texts) = &self.label_texts {
            let (names, empty) = (class_names(texts), decoder.empty_label.unwrap_or(-1));
            let number: HashMap<&str, i64> = names.iter().map(|n| &**n).zip(0..).collect();
            let number = |name: &str| number.get(name).copied().unwrap_or(empty);
            self.labels = Some(texts.iter().map(number).collect());
        }
    }
    /// Adds a row for a node that the table does not contain.
    pub(crate) fn push_missing(&mut self, decoder: &Decoder) {
        self.weights.as_mut().into_iter().for_each(|w| w.push(0.0));
        self.labels.as_mut().into_iter().for_each(|l| l.push(-1));
        self.label_texts.as_mut().into_iter().for_each(|l| l.push(""));
        self.timestamps.as_mut().into_iter().for_each(|t| t.push(-1));
        self.attributes.push_missing(decoder);
    }
    /// Selects rows out of `count`, in this order.
    pub(crate) fn keep(&mut self, count: usize, rows: &[u32]) {
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

/// An invalid row.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Row in these columns.
    pub(crate) row: usize,
    /// Line of the file, if rows are not lines.
    pub(crate) line: Option<u64>,
    /// Field, from 1; 0 for the whole line.
    pub(crate) field: usize,
    pub(crate) expected: Expected,
    pub(crate) found: Cut,
}

/// Field (from 1; 0 for the whole row), expected and found value of an invalid row.
pub(crate) type Wrong = (usize, Expected, Cut);

impl Columns {
    pub(crate) fn empty(header: &Header, decoder: &Decoder) -> Self {
        let ids = header
            .text_ids
            .iter()
            .map(|&text| if text { Ids::Text(Texts::new()) } else { Ids::Int(vec![]) })
            .collect();
        Self { rows: 0, ids, table: TableColumns::empty(decoder), problems: vec![] }
    }

    /// Parses a block of whole lines; stops after `most` invalid rows.
    pub(crate) fn parse(block: &[u8], header: &Header, decoder: &Decoder, most: usize) -> Self {
        let mut out = Self::empty(header, decoder);
        let reader = AttributeReader::new(decoder, Notation::PLAIN);
        let mut lines = lines(block);
        while out.problems.len() < most
            && let Some(line) = lines.next()
        {
            let row = out.row(line, header, decoder, &reader);
            out.end_row(row, None);
        }
        out
    }

    /// Counts a row and records its error; `line` is its line if rows are not lines.
    pub(crate) fn end_row(&mut self, row: Result<(), Wrong>, line: Option<u64>) {
        if let Err((field, expected, found)) = row {
            self.problems.push(Problem { row: self.rows, line, field, expected, found });
        }
        self.rows += 1;
    }

    /// Parses a line and appends it to the columns. After an error, some columns have a value for the row and others do
    /// not.
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
        self.lead(header, decoder, |_| {
            let text = fields.next().ok_or_else(whole)?;
            Ok(TextField { text, notation: Notation::PLAIN })
        })?;
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

    /// Parses ids, weight, label and timestamp. `next` returns the field at a position in this order.
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
            let remedy = remedy_of(decoder, remedy);
            let expected = Expected::from(kind).of_column(header.names[k]).or(remedy);
            (header.positions[k] + 1, expected, field.found())
        };
        // `empty` is the value of an empty field.
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
                    ids.push(utf8.map_err(|_| wrong(k, "UTF-8 text", OTHER_ENCODING, field))?);
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
                rounded(field.float(), decoder.rounding()).map_err(|e| {
                    let number = Expected::from("a float")
                        .or(remedy_of(decoder, field.remedy(LeadingColumn::Weight)));
                    let expected = e.expected(number, ROUND).of_column(header.names[k]);
                    (header.positions[k] + 1, expected, field.found())
                })?
            });
        }
        if let Some(texts) = &mut table.label_texts {
            let (k, field) = next()?;
            let remedy = field.remedy(LeadingColumn::Label);
            let text = field.bytes().ok_or_else(|| wrong(k, "a text", remedy, field))?;
            let utf8 = std::str::from_utf8(text);
            texts.push(utf8.map_err(|_| wrong(k, "UTF-8 text", OTHER_ENCODING, field))?);
        } else if let Some(labels) = &mut table.labels {
            labels.push(int(next()?, LeadingColumn::Label, decoder.empty_label)?);
        }
        if let Some(timestamps) = &mut table.timestamps {
            let (k, field) = next()?;
            timestamps.push(match zero.filter(|_| field.is_empty()) {
                Some(zero) => zero,
                // The header of a table of GraphLearn declares 32 bits.
                None if header.narrow[k] => int((k, field), LeadingColumn::Time, None)?,
                None => field
                    .time()
                    .map_err(|kind| wrong(k, kind, field.remedy(LeadingColumn::Time), field))?,
            });
        }
        Ok(())
    }

    /// Removes numbers after the counted rows, which have `floats` and `ints` numbers among their attributes.
    #[cold]
    pub(crate) fn truncate(&mut self, floats: usize, ints: usize) {
        let (rows, table) = (self.rows, &mut self.table);
        for ids in &mut self.ids {
            if let Ids::Int(ids) = ids {
                ids.truncate(rows);
            }
        }
        table.weights.iter_mut().for_each(|v| v.truncate(rows));
        table.labels.iter_mut().for_each(|v| v.truncate(rows));
        table.timestamps.iter_mut().for_each(|v| v.truncate(rows));
        table.attributes.floats.truncate(rows * floats);
        table.attributes.ints.truncate(rows * ints);
    }
    /// Reserves memory for rows, except for their texts and lists.
    pub(crate) fn reserve(&mut self, rows: usize, decoder: &Decoder) {
        for ids in &mut self.ids {
            if let Ids::Int(ids) = ids {
                ids.reserve_exact(rows);
            }
        }
        self.table.reserve(rows);
        let [floats, ints, _, doubles] = decoder.widths();
        self.table.attributes.floats.reserve_exact(rows * floats);
        self.table.attributes.doubles.reserve_exact(rows * doubles);
        self.table.attributes.ints.reserve_exact(rows * ints);
    }
    /// Frees reserved memory that is not used.
    pub(crate) fn shrink(&mut self) {
        for ids in &mut self.ids {
            if let Ids::Int(ids) = ids {
                ids.shrink_to_fit();
            }
        }
        self.table.shrink();
    }

    pub(crate) fn append(&mut self, other: &Self) {
        self.rows += other.rows;
        self.ids.iter_mut().zip(&other.ids).for_each(|(a, b)| append_ids(a, b));
        self.table.append(&other.table);
    }
}

/// Appends ids of the same kind, numbers or texts.
pub(crate) fn append_ids(ids: &mut Ids, more: &Ids) {
    match (ids, more) {
        (Ids::Int(ids), Ids::Int(more)) => ids.extend_from_slice(more),
        (Ids::Text(ids), Ids::Text(more)) => ids.append(more),
        // `read` validates that the files of a source have ids of one kind, and so do blocks of an edge list.
        _ => unreachable!("ids of two kinds in one column"),
    }
}
