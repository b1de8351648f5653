//! Reads Parquet files: columns by name, typed values instead of text.

use std::io::Read;
use std::path::Path;

use burn_gnn_files::DataError;

use super::columns::Columns;
use super::decoder::Decoder;
use super::header::Header;
use super::options::ReadOptions;
use super::source::Piece;
use crate::files::{Progress, format_error, io_error, open};

/// By the first bytes, which no table of text begins with: a header has a colon or the name of a column.
pub(super) fn is_parquet(path: &Path) -> Result<bool, DataError> {
    let mut start = [0; 4];
    match open(path)?.0.read_exact(&mut start) {
        Ok(()) => Ok(&start == b"PAR1"),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(io_error(path, e)),
    }
}

#[cfg(not(feature = "parquet"))]
pub(super) fn read_parquet(
    piece: &Piece,
    _ids: &[&'static str],
    _decoder: &Decoder,
    _options: &ReadOptions,
    _bar: &Progress,
) -> Result<(Header, Vec<Columns>), DataError> {
    Err(format_error(
        &piece.path,
        "expected text, found a Parquet file; build with the feature `parquet`",
    ))
}

#[cfg(feature = "parquet")]
pub(super) use typed::read_parquet;

#[cfg(feature = "parquet")]
mod typed {
    use burn_gnn_graph::Ids;
    use rayon::prelude::*;

    use super::super::attr_type::AttrType;
    use super::super::attributes::{AttributeReader, Attributes};
    use super::super::columns::{EMPTY_LABEL, EMPTY_NUMBER, Problem, TEXT_LABELS};
    use super::super::parse_number::parse_f32;
    use super::{
        Columns, DataError, Decoder, Header, Path, Piece, Progress, ReadOptions, format_error,
    };
    use crate::files::{Cut, Expected};
    use crate::parquet::{Cell, ParquetFile};

    /// A file; its groups of rows are decoded in parallel.
    pub(in super::super) fn read_parquet(
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
            csv.header(path, 0, names.iter().map(String::as_bytes), ids, decoder)?;
        header.text_ids = header.positions[..ids.len()].iter().map(|&c| file.is_text(c)).collect();
        if let Some(&list) = header.positions.iter().chain(&attributes).find(|&&c| file.is_list(c))
        {
            return Err(file.refuse(list, "one value per row"));
        }
        let rows = Rows {
            path,
            file: &file,
            header: &header,
            attributes: &attributes,
            decoder,
            most: options.max_problems,
        };
        let first: Vec<usize> = file
            .groups()
            .map(|g| file.rows(g))
            .scan(0, |sum, rows| {
                let first = *sum;
                *sum += *rows.as_ref().unwrap_or(&0);
                Some(rows.map(|_| first))
            })
            .collect::<Result<_, _>>()?;
        let groups = file
            .groups()
            .into_par_iter()
            .map(|g| rows.group(g, first[g]))
            .collect::<Result<_, _>>()?;
        bar.inc(std::fs::metadata(path).map_or(0, |m| m.len()));
        Ok((header, groups))
    }

    struct Rows<'a> {
        path: &'a Path,
        file: &'a ParquetFile,
        header: &'a Header,
        attributes: &'a [usize],
        decoder: &'a Decoder,
        most: usize,
    }

    impl Rows<'_> {
        /// Rows of a group, of which `before` rows of the file stand before.
        fn group(&self, group: usize, before: usize) -> Result<Columns, DataError> {
            let read = |&c: &usize| self.file.read(group, c);
            let lead: Vec<_> = self.header.positions.iter().map(read).collect::<Result<_, _>>()?;
            let attributes: Vec<_> = self.attributes.iter().map(read).collect::<Result<_, _>>()?;
            let mut lead: Vec<_> = lead.iter().map(|c| c.iter()).collect();
            let mut attributes: Vec<_> = attributes.iter().map(|c| c.iter()).collect();
            let (mut out, mut room) = (Columns::empty(self.header, self.decoder), String::new());
            let reader = AttributeReader::new(self.decoder);
            let ended =
                || format_error(self.path, "expected columns of equal length, found shorter ones");
            for row in 0..self.file.rows(group)? {
                if out.problems.len() >= self.most {
                    break;
                }
                let cells = lead
                    .iter_mut()
                    .map(Iterator::next)
                    .collect::<Option<Vec<Cell<'_>>>>()
                    .ok_or_else(ended)?;
                let mut wrong = self
                    .lead(&cells, &mut out)
                    .err()
                    .map(|(k, expected)| (self.header.positions[k], expected, cells[k]));
                for (i, column) in attributes.iter_mut().enumerate() {
                    let cell = column.next().ok_or_else(ended)?;
                    if wrong.is_none() {
                        let pushed =
                            self.attribute(&reader, i, cell, &mut room, &mut out.attributes);
                        let name =
                            self.decoder.csv.as_ref().map_or("", |csv| csv.attributes[i].as_str());
                        wrong = pushed.err().map(|expected| {
                            let what = format!("{} (`{name}`)", expected.what);
                            (self.attributes[i], Expected { what, ..expected }, cell)
                        });
                    }
                }
                if let Some((at, expected, cell)) = wrong {
                    let found = if cell == Cell::Null {
                        Cut::from("nothing")
                    } else {
                        cell.text(&mut room).into()
                    };
                    let line = Some((before + row) as u64 + 1);
                    out.problems.push(Problem { row, line, field: at + 1, expected, found });
                }
                out.rows += 1;
            }
            Ok(out)
        }

        /// Ids, weight, label and timestamp of a row; the error is which of them, and what was expected.
        fn lead(&self, cells: &[Cell<'_>], out: &mut Columns) -> Result<(), (usize, Expected)> {
            // What to do about a null; about another type nothing but the file can be changed.
            let wrong = |k: usize, kind: &str, of_null: &'static str| {
                let expected = Expected::from(format!("{kind} (`{}`)", self.header.names[k]));
                (k, expected.or(if cells[k] == Cell::Null { of_null } else { "" }))
            };
            let zero = self.decoder.empty_as_zero.then_some(0);
            let int = |k: usize, null: Option<i64>, of_null| match (cells[k], null) {
                (Cell::Int(v), _) => Ok(v),
                (Cell::Null, Some(value)) => Ok(value),
                _ => Err(wrong(k, "an int64", of_null)),
            };
            let mut k = 0;
            for ids in &mut out.ids {
                match (ids, cells[k]) {
                    (Ids::Int(ids), _) => ids.push(int(k, None, "")?),
                    (Ids::Text(ids), Cell::Text(text)) if !text.is_empty() => {
                        ids.push(std::str::from_utf8(text).map_err(|_| wrong(k, "UTF-8 text", ""))?)
                    }
                    (Ids::Text(_), _) => return Err(wrong(k, "a text that is not empty", "")),
                }
                k += 1;
            }
            if self.decoder.weighted {
                let cell = cells[k];
                out.weights.push(if zero.is_some() && cell == Cell::Null {
                    0.0
                } else {
                    float(cell).ok_or_else(|| wrong(k, "a float", EMPTY_NUMBER))?
                });
                k += 1;
            }
            if self.decoder.text_labels {
                match cells[k] {
                    Cell::Null => out.label_texts.push(""),
                    Cell::Text(text) => out
                        .label_texts
                        .push(std::str::from_utf8(text).map_err(|_| wrong(k, "UTF-8 text", ""))?),
                    _ => return Err(wrong(k, "a text", "")),
                }
                k += 1;
            } else if self.decoder.labeled {
                out.labels.push(int(k, self.decoder.empty_label, EMPTY_LABEL).map_err(
                    |(k, expected)| match cells[k] {
                        Cell::Text(_) => (k, expected.or(TEXT_LABELS)),
                        _ => (k, expected),
                    },
                )?);
                k += 1;
            }
            if self.decoder.timestamped {
                out.timestamps.push(int(k, zero, EMPTY_NUMBER)?);
            }
            Ok(())
        }

        /// Attribute `i` of a row; the error is what was expected.
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
                    out.floats.extend(float(cell));
                    Ok(())
                }
                (AttrType::Int, Cell::Int(v)) => {
                    out.ints.push(v);
                    Ok(())
                }
                _ => {
                    let text = std::str::from_utf8(cell.text(room)).map_err(|_| "UTF-8 text")?;
                    reader.push(i, text, out)
                }
            }
        }
    }

    fn float(cell: Cell<'_>) -> Option<f32> {
        match cell {
            Cell::Int(v) => Some(v as f32),
            Cell::F32(v) => Some(v),
            Cell::F64(v) => Some(v as f32),
            Cell::Text(text) => parse_f32(text),
            Cell::Null => None,
        }
    }
}
