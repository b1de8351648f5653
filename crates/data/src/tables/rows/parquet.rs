//! Reads Parquet files: columns by name, typed values instead of text.

use std::ops::Range;
use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Ids;
use parquet::data_type::ByteArray;
use rayon::prelude::*;

use super::attributes::{AttributeReader, Attributes};
use super::columns::Columns;
use super::field::{EMPTY_LABEL, EMPTY_NUMBER, Field, LeadingColumn, Notation, TEXT_LABELS};
use super::header::Header;
use crate::arrays::parquet::cells::{Cell, Cells, Values};
use crate::arrays::parquet::file::ParquetFile;
use crate::columns::narrow::{self, NotF32};
use crate::files::{Cut, Expected, Progress, format_error};
use crate::tables::schema::attr_type::AttrType;
use crate::tables::schema::decoder::{Decoder, Slot};
use crate::tables::schema::read_options::ReadOptions;
use crate::tables::text::source::Piece;

/// Reads the rows of a file. Groups of rows are decoded in parallel.
pub(crate) fn read_parquet(
    piece: &Piece,
    ids: &[&'static str],
    decoder: &Decoder,
    options: &ReadOptions,
    bar: &Progress,
) -> Result<(Header, Vec<Columns>), DataError> {
    let path = &piece.path;
    if piece.range.is_some() {
        return Err(format_error(
            path,
            "expected at least as many Parquet files as shards; a Parquet file is not cut",
        ));
    }
    let Some(csv) = &decoder.csv else {
        return Err(format_error(
            path,
            "expected a table in GraphLearn's format, found a Parquet file; name its columns with `Decoder::csv`",
        ));
    };
    let file = ParquetFile::open(path, options.max_expansion)?;
    let names = file.names();
    let (mut header, attributes) =
        csv.header(path, 0, names.iter().map(|name| name.as_bytes().into()), ids, decoder)?;
    header.text_ids = header.positions[..ids.len()].iter().map(|&c| file.is_text(c)).collect();
    let single = attributes
        .iter()
        .zip(&decoder.attr_types)
        .filter(|(_, ty)| !matches!(ty, AttrType::Vector { .. }))
        .map(|(c, _)| c);
    if let Some(&list) = header.positions.iter().chain(single).find(|&&c| file.is_list(c)) {
        let expected = Expected::from("one value per row");
        return Err(file.refuse(list, expected.or("`AttrType::vector` reads lists of numbers")));
    }
    let rows = Rows {
        path,
        file: &file,
        header: &header,
        attributes: &attributes,
        names: &csv.attributes,
        decoder,
        most: options.max_problems,
    };
    let groups = file.groups().into_par_iter().map(|g| rows.group(g)).collect::<Result<_, _>>()?;
    bar.inc(std::fs::metadata(path).map_or(0, |m| m.len()));
    Ok((header, groups))
}

struct Rows<'a> {
    path: &'a Path,
    file: &'a ParquetFile,
    header: &'a Header,
    attributes: &'a [usize],
    /// Names of the attributes.
    names: &'a [String],
    decoder: &'a Decoder,
    most: usize,
}

impl Rows<'_> {
    fn group(&self, group: usize) -> Result<Columns, DataError> {
        let read = |&c: &usize| self.file.read(group, c);
        let columns = || {
            let lead = self.header.positions.par_iter().map(read).collect::<Result<_, _>>()?;
            let attributes = self.attributes.par_iter().map(read).collect::<Result<_, _>>()?;
            Ok::<(Vec<Cells>, Vec<Cells>), DataError>((lead, attributes))
        };
        let rows = self.file.rows(group)?;
        let (lead, attributes) = columns()?;
        let plain = |c: &Cells| c.present.is_none() && c.rows() == rows;
        if !lead.iter().chain(&attributes).all(plain) {
            return self.row_by_row(group, &lead, &attributes);
        }
        match self.by_column(rows, lead, &attributes) {
            Some(columns) => Ok(columns),
            None => {
                let (lead, attributes) = columns()?;
                self.row_by_row(group, &lead, &attributes)
            }
        }
    }

    /// Converts rows without nulls column by column; `None` if a value does not have the type of its column.
    fn by_column(&self, rows: usize, lead: Vec<Cells>, attributes: &[Cells]) -> Option<Columns> {
        let mut out = Columns::empty(self.header, self.decoder);
        out.rows = rows;
        let (table, mut lead) = (&mut out.table, lead.into_iter().map(|c| c.values));
        for ids in &mut out.ids {
            match (ids, lead.next()?) {
                (Ids::Int(ids), Values::Int(v)) => *ids = v,
                (Ids::Text(ids), Values::Text(v)) => {
                    for t in &v {
                        ids.push(text(t).filter(|t| !t.is_empty())?);
                    }
                }
                _ => return None,
            }
        }
        if let Some(weights) = &mut table.weights {
            *weights = vec![0.0; rows];
            fill(&lead.next()?, 0..rows, 1, weights, 0, 1)?;
        }
        if let Some(texts) = &mut table.label_texts {
            let Values::Text(v) = lead.next()? else { return None };
            for t in &v {
                texts.push(text(t)?);
            }
        }
        for column in [&mut table.labels, &mut table.timestamps].into_iter().flatten() {
            let Values::Int(v) = lead.next()? else { return None };
            *column = v;
        }
        self.attributes_by_column(rows, attributes, &mut table.attributes)?;
        Some(out)
    }

    fn attributes_by_column(
        &self,
        rows: usize,
        columns: &[Cells],
        out: &mut Attributes,
    ) -> Option<()> {
        /// Rows per pass, so that the numbers of all columns are in the cache.
        const BLOCK: usize = 1 << 10;
        let [floats, ints, _, doubles] = self.decoder.widths();
        (out.floats, out.ints) = (vec![0.0; rows * floats], vec![0; rows * ints]);
        out.doubles = vec![0.0; rows * doubles];
        // Does not round: the numbers of a group with one to round are counted in `row_by_row`.
        let exact = Decoder { round_floats: false, ..self.decoder.clone() };
        let (reader, mut room) = (AttributeReader::new(&exact, Notation::PLAIN), String::new());
        let (mut numbers, mut whole) = (vec![], vec![]);
        for (i, (cells, slot)) in columns.iter().zip(self.decoder.slots()).enumerate() {
            match (&self.decoder.attr_types[i], slot, &cells.values) {
                (AttrType::Float, Slot::Float(at), values) => numbers.push((at, 1, values)),
                (&AttrType::Vector { size }, Slot::Float(at), values) if cells.lists.is_some() => {
                    if !cells.lists.iter().flatten().all(|&len| len == size) {
                        return None;
                    }
                    numbers.push((at, size as usize, values));
                }
                (AttrType::Int, Slot::Int(at), Values::Int(v)) => whole.push((at, v)),
                (_, slot, _) => {
                    let mut one = Attributes::empty(self.decoder);
                    for cell in cells.iter() {
                        self.attribute(&reader, i, cell, &mut room, &mut one).ok()?;
                    }
                    match slot {
                        Slot::Float(at) => {
                            let size = one.floats.len().checked_div(rows)?;
                            fill(
                                &Values::F32(one.floats),
                                0..rows,
                                size,
                                &mut out.floats,
                                at,
                                floats,
                            )?;
                        }
                        Slot::Double(at) => {
                            let to = out.doubles.chunks_exact_mut(doubles).zip(one.doubles);
                            to.for_each(|(row, v)| row[at] = v);
                        }
                        Slot::Int(at) => {
                            let to = out.ints.chunks_exact_mut(ints).zip(one.ints);
                            to.for_each(|(row, v)| row[at] = v);
                        }
                        Slot::Text(at) => out.texts[at] = std::mem::take(one.texts.get_mut(at)?),
                        Slot::List(at) => out.lists[at] = std::mem::take(one.lists.get_mut(at)?),
                    }
                }
            }
        }
        for from in (0..rows).step_by(BLOCK) {
            let range = from..rows.min(from + BLOCK);
            for &(at, size, values) in &numbers {
                let to = &mut out.floats[range.start * floats..range.end * floats];
                fill(values, range.clone(), size, to, at, floats)?;
            }
            for &(at, values) in &whole {
                let to = out.ints[range.start * ints..range.end * ints].chunks_exact_mut(ints);
                to.zip(&values[range.clone()]).for_each(|(row, &v)| row[at] = v);
            }
        }
        Some(())
    }

    /// Converts rows with nulls, and reports invalid rows.
    fn row_by_row(
        &self,
        group: usize,
        lead: &[Cells],
        attributes: &[Cells],
    ) -> Result<Columns, DataError> {
        let first = self.file.first_row(group)? as u64;
        let mut lead: Vec<_> = lead.iter().map(|c| c.iter()).collect();
        let mut attributes: Vec<_> = attributes.iter().map(|c| c.iter()).collect();
        let (mut out, mut room) = (Columns::empty(self.header, self.decoder), String::new());
        let reader = AttributeReader::new(self.decoder, Notation::PLAIN);
        let ended =
            || format_error(self.path, "expected columns of equal length, found shorter ones");
        for number in 0..self.file.rows(group)? {
            if out.problems.len() >= self.most {
                break;
            }
            let cells = lead
                .iter_mut()
                .map(Iterator::next)
                .collect::<Option<Vec<Cell<'_>>>>()
                .ok_or_else(ended)?;
            let mut row = out.lead(self.header, self.decoder, |k| Ok(cells[k]));
            for (i, column) in attributes.iter_mut().enumerate() {
                let cell = column.next().ok_or_else(ended)?;
                if row.is_ok() {
                    let pushed =
                        self.attribute(&reader, i, cell, &mut room, &mut out.table.attributes);
                    row = pushed.map_err(|expected| {
                        (self.attributes[i] + 1, expected.of_column(&self.names[i]), cell.found())
                    });
                }
            }
            out.end_row(row, Some(first + number as u64));
        }
        Ok(out)
    }

    /// Appends attribute `i` of a row; the error is the expected value.
    fn attribute(
        &self,
        reader: &AttributeReader<'_>,
        i: usize,
        cell: Cell<'_>,
        room: &mut String,
        out: &mut Attributes,
    ) -> Result<(), Expected> {
        match (&self.decoder.attr_types[i], cell) {
            (AttrType::Float, Cell::Int(_) | Cell::F32(_) | Cell::F64(_)) => {
                reader.push_float(cell.float(), out)
            }
            (AttrType::Int, Cell::Int(v)) => {
                out.ints.push(v);
                Ok(())
            }
            (AttrType::Double, Cell::Int(_) | Cell::F32(_) | Cell::F64(_)) => {
                let number = cell.double().ok_or_else(|| Expected::from(F64))?;
                out.doubles.push(number);
                Ok(())
            }
            (&AttrType::Vector { size }, Cell::List(list)) => {
                if list.len != size as usize {
                    let plural = if size == 1 { "" } else { "s" };
                    return Err(format!("a list of {size} number{plural}").into());
                }
                for (i, number) in list.iter().enumerate() {
                    let number = number.float();
                    if number == Err(NotF32::NoNumber) {
                        return Err("a list of numbers".into());
                    }
                    reader.push_float(number, out).map_err(|e| e.of_entry(i))?;
                }
                Ok(())
            }
            _ => reader.push(i, cell.text(room), out),
        }
    }
}

/// Remedy for floats as classes or ids.
const FLOATS: &str = "the column holds floats: cast it to int64 where the file is written (pandas: `astype(\"Int64\")`)";
/// Remedy for times that are not whole numbers.
const TIMES: &str = "cast the column to a timestamp or an int64 where the file is written";

fn text(bytes: &ByteArray) -> Option<&str> {
    std::str::from_utf8(bytes.data()).ok()
}

/// Copies the numbers of the rows `range` of a column, `size` per row, into rows of `width` numbers at position `at`.
/// `None` if f32 cannot represent a number.
fn fill(
    values: &Values,
    range: Range<usize>,
    size: usize,
    out: &mut [f32],
    at: usize,
    width: usize,
) -> Option<()> {
    macro_rules! fill {
        ($values:expr, $cell:expr) => {{
            let rows = $values.get(range.start * size..range.end * size)?.chunks_exact(size);
            for (row, numbers) in out.chunks_exact_mut(width).zip(rows) {
                for (to, &number) in row[at..at + size].iter_mut().zip(numbers) {
                    *to = $cell(number).float().ok()?;
                }
            }
            Some(())
        }};
    }
    match values {
        Values::Int(v) => fill!(v, Cell::Int),
        Values::F32(v) => fill!(v, Cell::F32),
        Values::F64(v) => fill!(v, Cell::F64),
        Values::Text(_) => None,
    }
}

/// The expected value of an f64 column of whole numbers.
const F64: &str = "a whole number that f64 can represent";

impl Cell<'_> {
    /// A number as f64; `None` for a whole number that f64 cannot represent, and for what is not a number.
    fn double(self) -> Option<f64> {
        match self {
            Self::Int(v) => {
                let near = v as f64;
                (near as i64 == v && v != i64::MAX).then_some(near)
            }
            Self::F32(v) => Some(v.into()),
            Self::F64(v) => Some(v),
            Self::Null | Self::Text(_) | Self::List(_) => None,
        }
    }
}

impl Field for Cell<'_> {
    fn is_empty(self) -> bool {
        self == Cell::Null
    }
    fn int(self) -> Option<i64> {
        if let Cell::Int(v) = self { Some(v) } else { None }
    }
    fn float(self) -> Result<f32, NotF32> {
        match self {
            Cell::Int(v) => narrow::from_i64(v),
            Cell::F32(v) => Ok(v),
            Cell::F64(v) => narrow::from_f64(v),
            Cell::Text(text) => Notation::PLAIN.float(text),
            Cell::Null | Cell::List(_) => Err(NotF32::NoNumber),
        }
    }
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Cell::Null => Some(b""),
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }
    fn remedy(self, column: LeadingColumn) -> &'static str {
        match (column, self) {
            (LeadingColumn::Weight | LeadingColumn::Time, Cell::Null) => EMPTY_NUMBER,
            (LeadingColumn::Label, Cell::Null) => EMPTY_LABEL,
            (LeadingColumn::Label, Cell::Text(_)) => TEXT_LABELS,
            (LeadingColumn::Label | LeadingColumn::Id, Cell::F32(_) | Cell::F64(_)) => FLOATS,
            (LeadingColumn::Time, Cell::F32(_) | Cell::F64(_) | Cell::Text(_)) => TIMES,
            // Only the file can be changed.
            _ => "",
        }
    }
    fn found(self) -> Cut {
        match self {
            Cell::Null => "nothing".into(),
            // Printed with a point, which distinguishes them from whole numbers.
            Cell::F32(v) => (&format!("{v:?} (float32)")).into(),
            Cell::F64(v) => (&format!("{v:?} (float64)")).into(),
            _ => Cell::text(self, &mut String::new()).into(),
        }
    }
}
