//! Reads the columns of a CSV file, with types inferred from the cells.

use std::path::{Path, PathBuf};

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::{Frame, Texts};
use hashbrown::HashMap;

use crate::columns::data_column::{Cell, DataColumn, MOST_COLUMNS};
use crate::files::{Expected, format_error, table_error, within_limit};
use crate::tables::text::csv_records::{CsvFile, joined};
use crate::tables::text::decompress::text_of;
use crate::tables::text::format::explained;
use crate::tables::text::parse_number::parse_i64;

/// A CSV file with a header: some columns as texts, the others as numbers.
pub(super) struct CsvColumns {
    pub(super) path: PathBuf,
    pub(super) rows: usize,
    /// The requested columns that the file has.
    pub(super) keys: Vec<Option<Texts>>,
    places: Vec<Option<usize>>,
    lines: Vec<u64>,
    pub(super) data: Vec<Placed>,
}

/// A column of data and its position in the file.
pub(super) struct Placed {
    place: usize,
    column: DataColumn,
}

impl CsvColumns {
    /// Reads a file; `keys` are names of columns of ids.
    pub(super) fn read(path: &Path, separator: u8, keys: &[&str]) -> Result<Self, DataError> {
        Self::read_rows(path, separator, keys)
            .map_err(|e| explained(e, path, "a CSV file with a header", &[]))
    }

    fn read_rows(path: &Path, separator: u8, keys: &[&str]) -> Result<Self, DataError> {
        let mut file = CsvFile::new(path, separator, text_of(path, true)?)?;
        let mut places: HashMap<String, usize> = HashMap::new();
        for (i, raw) in file.head.iter().enumerate() {
            let name = String::from_utf8_lossy(raw);
            let name = name.trim();
            // Columns without a name are row numbers that pandas writes. DGL skips them as well.
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
        let mut data: Vec<Placed> = places
            .into_iter()
            .map(|(name, place)| Placed { place, column: DataColumn::new(name) })
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
                let raw = record.get(place).unwrap_or_default();
                std::str::from_utf8(raw)
                    .map(str::trim)
                    .map_err(|_| wrong(place + 1, "UTF-8 text".into(), raw))
            };
            for (texts, place) in out.keys.iter_mut().zip(&out.places) {
                if let (Some(texts), Some(place)) = (texts, *place) {
                    texts.push(cell(place)?);
                }
            }
            for Placed { place, column } in &mut out.data {
                let text = cell(*place)?;
                let none = || "a number, `True`, `False`, or numbers joined by commas".to_owned();
                let pushed = parse(text).ok_or_else(none).and_then(|cell| column.push(cell));
                pushed.map_err(|expected| {
                    let expected = format!("{expected} (`{}`)", column.name());
                    wrong(*place + 1, expected, text.as_bytes())
                })?;
            }
            out.lines.push(line);
            out.rows += 1;
            within_limit(path.display(), "ids", out.rows as u64)?;
        }
        Ok(out)
    }

    /// A required column of ids.
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
        self.data.iter().try_for_each(|c| c.column.insert(frame, rows, "CSV file", device))
    }
    /// The graph number of each row; all 0 without such a column.
    pub(super) fn graph_ids(&self, k: usize) -> Result<Vec<i64>, DataError> {
        let Some(texts) = &self.keys[k] else { return Ok(vec![0; self.rows]) };
        let id = |(row, text): (usize, &str)| {
            parse_i64(text.as_bytes())
                .ok_or_else(|| self.error(row, k, "the number of a graph, an int64", text))
        };
        texts.iter().enumerate().map(id).collect()
    }
}

/// A cell: a number, or a vector `1, 2.5` or `[1, 2.5]`.
fn parse(text: &str) -> Option<Cell> {
    match text {
        "True" | "true" => return Some(Cell::Bool(true)),
        "False" | "false" => return Some(Cell::Bool(false)),
        _ => {}
    }
    let open = text.strip_prefix(['[', '(']);
    let inner = match open {
        Some(inner) => inner.strip_suffix([']', ')'])?,
        None => text,
    };
    let vector = open.is_some() || text.contains(',');
    // Python writes a tuple of one number with a trailing comma.
    let inner = inner.trim();
    let inner = if vector { inner.strip_suffix(',').unwrap_or(inner) } else { inner };
    if !vector {
        let int = parse_i64(inner.as_bytes()).map(Cell::Int);
        return int.or_else(|| inner.parse().ok().map(Cell::Float));
    }
    let parts = || inner.split(',').map(str::trim).filter(|_| !inner.is_empty());
    if let Some(ints) = parts().map(|p| parse_i64(p.as_bytes())).collect() {
        return Some(Cell::Ints(ints));
    }
    parts().map(|p| p.parse().ok()).collect::<Option<_>>().map(Cell::Floats)
}
