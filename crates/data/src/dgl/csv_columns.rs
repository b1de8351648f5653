//! Reads the columns of a CSV file, with types inferred from the cells.

use std::path::{Path, PathBuf};

use burn::tensor::{Device, TensorData};
use burn_gnn_files::DataError;
use burn_gnn_graph::{Column, Frame, Texts};
use hashbrown::HashMap;

use crate::files::{Expected, format_error, table_error, within_limit};
use crate::host_column::{column_of, pick_rows, unsupported};
use crate::tables::{CsvFile, joined, parse_i64, text_of};

/// Columns of data that a file may have: each becomes a tensor of every graph.
const MOST_COLUMNS: usize = 1 << 14;

/// A CSV file with a header: some columns as texts, the others as numbers.
pub(super) struct CsvColumns {
    pub(super) path: PathBuf,
    pub(super) rows: usize,
    /// The columns that were asked for, where the file has them.
    pub(super) keys: Vec<Option<Texts>>,
    places: Vec<Option<usize>>,
    lines: Vec<u64>,
    pub(super) data: Vec<DataColumn>,
}

/// A column of numbers, or of vectors of numbers.
pub(super) struct DataColumn {
    pub(super) name: String,
    place: usize,
    /// Numbers of a cell; `None`: a single one, without the axis.
    width: Option<usize>,
    values: Values,
}

enum Values {
    /// No cell yet.
    None,
    Bool(Vec<bool>),
    Int(Vec<i64>),
    /// Also whole numbers that a later cell turned out to stand beside fractions.
    Float(Vec<f64>),
}

/// One cell.
enum Cell {
    Bool(bool),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl CsvColumns {
    /// Reads a file; `keys` are names of columns of ids.
    pub(super) fn read(path: &Path, separator: u8, keys: &[&str]) -> Result<Self, DataError> {
        let mut file = CsvFile::new(path, separator, text_of(path, true)?)?;
        let mut places: HashMap<String, usize> = HashMap::new();
        for (i, raw) in file.head.iter().enumerate() {
            let name = String::from_utf8_lossy(raw);
            let name = name.trim();
            // Columns without a name are the row numbers that pandas writes; DGL leaves them out, too.
            if name.is_empty() {
                continue;
            }
            if places.insert(name.to_owned(), i).is_some() {
                return Err(table_error(
                    path,
                    file.head_line,
                    i + 1,
                    "columns of different names",
                    name,
                ));
            }
            if places.len() > MOST_COLUMNS {
                let expected = format!(
                    "at most {MOST_COLUMNS} columns; join those of one feature, as in \"0.1, 0.2\""
                );
                return Err(table_error(path, file.head_line, i + 1, expected, name));
            }
        }
        let keys: Vec<Option<usize>> = keys.iter().map(|&k| places.get(k).copied()).collect();
        places.retain(|_, place| !keys.contains(&Some(*place)));
        let mut data: Vec<DataColumn> = places
            .into_iter()
            .map(|(name, place)| DataColumn { name, place, width: None, values: Values::None })
            .collect();
        data.sort_unstable_by_key(|c| c.place);
        let texts = keys.iter().map(|p| p.map(|_| Texts::new())).collect();
        let mut out =
            Self { path: path.into(), rows: 0, keys: texts, places: keys, lines: vec![], data };
        let width = file.head.len();
        while let Some((record, line)) = file.next(path)? {
            let wrong = |at: usize, expected: String, found: &[u8]| {
                table_error(path, line, at, expected, found)
            };
            if record.len() != width {
                let found = joined(record.iter(), ", ");
                let expected = format!("{width} fields, not {}", record.len());
                return Err(wrong(0, expected, found.as_bytes()));
            }
            let cell = |place: usize| -> Result<&str, DataError> {
                std::str::from_utf8(&record[place])
                    .map(str::trim)
                    .map_err(|_| wrong(place + 1, "UTF-8 text".into(), &record[place]))
            };
            for (texts, place) in out.keys.iter_mut().zip(&out.places) {
                if let (Some(texts), Some(place)) = (texts, *place) {
                    texts.push(cell(place)?);
                }
            }
            for column in &mut out.data {
                let text = cell(column.place)?;
                column.push(text).map_err(|expected| {
                    wrong(
                        column.place + 1,
                        format!("{expected} (`{}`)", column.name),
                        text.as_bytes(),
                    )
                })?;
            }
            out.lines.push(line);
            out.rows += 1;
            within_limit(path.display(), "ids", out.rows as u64)?;
        }
        Ok(out)
    }

    /// A column of ids that must be there.
    pub(super) fn key(&self, k: usize, name: &str) -> Result<&Texts, DataError> {
        let missing =
            || format_error(&self.path, format!("expected a column `{name}`, found none"));
        self.keys[k].as_ref().ok_or_else(missing)
    }

    /// An error at the `k`-th column of ids of a row.
    pub(super) fn error(
        &self,
        row: usize,
        k: usize,
        expected: impl Into<Expected>,
        found: &str,
    ) -> DataError {
        let column = self.places[k].map_or(0, |p| p + 1);
        table_error(&self.path, self.lines[row], column, expected, found)
    }

    /// Inserts the data of some rows into a frame.
    pub(super) fn insert(
        &self,
        frame: &mut Frame,
        rows: &[u32],
        device: &Device,
    ) -> Result<(), DataError> {
        self.data.iter().try_for_each(|c| Ok(frame.insert_column(&c.name, c.rows(rows, device)?)?))
    }
    /// The number of the graph that each row belongs to; all 0 where no column says it.
    pub(super) fn graph_ids(&self, k: usize) -> Result<Vec<i64>, DataError> {
        let Some(texts) = &self.keys[k] else { return Ok(vec![0; self.rows]) };
        let id = |(row, text): (usize, &str)| {
            parse_i64(text.as_bytes())
                .ok_or_else(|| self.error(row, k, "the number of a graph, an int64", text))
        };
        texts.iter().enumerate().map(id).collect()
    }
}

impl DataColumn {
    /// One more cell; `Err` with what was expected.
    fn push(&mut self, text: &str) -> Result<(), String> {
        let (cell, width) =
            parse(text).ok_or("a number, `True`, `False`, or numbers joined by commas")?;
        if let Values::None = self.values {
            self.width = width;
            self.values = match cell {
                Cell::Bool(_) => Values::Bool(vec![]),
                Cell::Ints(_) => Values::Int(vec![]),
                Cell::Floats(_) => Values::Float(vec![]),
            };
        }
        if self.width != width {
            let said = |w: Option<usize>| {
                w.map_or("a single number".into(), |w| format!("{w} numbers joined by commas"))
            };
            return Err(format!("{} as in the first row", said(self.width)));
        }
        if let (Values::Int(ints), Cell::Floats(_)) = (&self.values, &cell) {
            self.values = Values::Float(ints.iter().map(|&i| i as f64).collect());
        }
        match (&mut self.values, cell) {
            (Values::Bool(v), Cell::Bool(b)) => v.push(b),
            (Values::Int(v), Cell::Ints(c)) => v.extend(c),
            (Values::Float(v), Cell::Ints(c)) => v.extend(c.into_iter().map(|i| i as f64)),
            (Values::Float(v), Cell::Floats(c)) => v.extend(c),
            (Values::Bool(_), _) => return Err("`True` or `False` as in the first row".into()),
            _ => return Err("a number as in the first row".into()),
        }
        Ok(())
    }

    /// The cells of some rows on a device: bool, int64 or, as DGL has it, float32.
    fn rows(&self, rows: &[u32], device: &Device) -> Result<Column, DataError> {
        let width = self.width.unwrap_or(1);
        let shape: Vec<usize> = [Some(rows.len()), self.width].into_iter().flatten().collect();
        let data = match &self.values {
            Values::Bool(v) => TensorData::new(pick_rows(v, rows, width), shape),
            Values::Int(v) => TensorData::new(pick_rows(v, rows, width), shape),
            Values::Float(v) => TensorData::new(
                pick_rows(v, rows, width).into_iter().map(|x| x as f32).collect(),
                shape,
            ),
            Values::None => TensorData::new(Vec::<f32>::new(), shape),
        };
        column_of(data, device)
            .map_err(|d| unsupported("CSV file", &self.name, format!("{d:?}"), device))
    }
}

/// A cell, and the number of its numbers where it is a vector: `1, 2.5` or `[1, 2.5]`.
fn parse(text: &str) -> Option<(Cell, Option<usize>)> {
    match text {
        "True" | "true" => return Some((Cell::Bool(true), None)),
        "False" | "false" => return Some((Cell::Bool(false), None)),
        _ => {}
    }
    let open = text.strip_prefix(['[', '(']);
    let inner = match open {
        Some(inner) => inner.strip_suffix([']', ')'])?,
        None => text,
    };
    let vector = open.is_some() || text.contains(',');
    // Python writes a vector of one number with a comma behind it.
    let inner = inner.trim();
    let inner = if vector { inner.strip_suffix(',').unwrap_or(inner) } else { inner };
    let parts = || inner.split(',').map(str::trim).filter(|_| !(vector && inner.is_empty()));
    let width = vector.then(|| parts().count());
    if let Some(ints) = parts().map(|p| parse_i64(p.as_bytes())).collect() {
        return Some((Cell::Ints(ints), width));
    }
    parts()
        .map(|p| p.parse().ok())
        .collect::<Option<_>>()
        .map(|floats| (Cell::Floats(floats), width))
}
