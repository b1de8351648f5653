//! Reads the columns of a Parquet file, in parallel, with their types.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_graph::Texts;
use parquet::data_type::ByteArray;
use rayon::prelude::*;

use super::convert::RawColumn;
use crate::arrays::parquet::cells::{Cells, Values};
use crate::arrays::parquet::file::ParquetFile;
use crate::columns::data_column::MOST_COLUMNS;
use crate::database::column::{ColumnValues, ListColumn, ListValues};
use crate::files::format_error;

/// Prefix of the columns in which pandas stores the index of a table.
const INDEX: &str = "__index_level_";

/// Reads the columns for which `keep` is true, at most `max_rows` rows.
pub(super) fn read_columns(
    path: &Path,
    max_expansion: u32,
    max_rows: usize,
    keep: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<RawColumn>, DataError> {
    let file = ParquetFile::open(path, max_expansion)?;
    let names = file.names();
    if names.len() > MOST_COLUMNS {
        let why = format!("expected at most {MOST_COLUMNS} columns, found {}", names.len());
        return Err(format_error(path, why));
    }
    let mut rows = 0usize;
    for group in file.groups() {
        rows = rows.saturating_add(file.rows(group)?);
    }
    let rows = rows.min(max_rows);
    let wanted = names.into_iter().enumerate();
    let wanted: Vec<_> = wanted.filter(|(_, n)| !n.starts_with(INDEX) && keep(n)).collect();
    let read = wanted.into_par_iter().map(|(column, name)| {
        let reader = ColumnReader { path, file: &file, column, name: &name, rows };
        let (values, missing) = reader.read()?;
        Ok(RawColumn { name, values, missing })
    });
    let read: Vec<Result<_, DataError>> = read.collect();
    read.into_iter().collect()
}

struct ColumnReader<'a> {
    path: &'a Path,
    file: &'a ParquetFile,
    column: usize,
    name: &'a str,
    /// Rows to read.
    rows: usize,
}

impl ColumnReader<'_> {
    fn read(&self) -> Result<(ColumnValues, Option<Vec<bool>>), DataError> {
        if self.file.is_list(self.column) {
            let mut missing = Missing { rows: 0, flags: None };
            let lists = ColumnValues::Lists(self.lists(&mut missing)?);
            return Ok((lists, missing.flags));
        }
        let mut missing = Missing { rows: 0, flags: None };
        let values = match self.file.no_rows(self.column)?.values {
            Values::Int(_) if self.file.is_bool(self.column) => {
                let bools = |cells: Values| match cells {
                    Values::Int(v) => Some(v.into_iter().map(|v| v != 0).collect()),
                    _ => None,
                };
                ColumnValues::Bools(self.scalars(&mut missing, bools)?)
            }
            Values::Int(_) => {
                let ints = |cells: Values| match cells {
                    Values::Int(v) => Some(v),
                    _ => None,
                };
                let mut ints = self.scalars(&mut missing, ints)?;
                match self.file.time_unit(self.column) {
                    Some(unit) => {
                        self.microseconds(&mut ints, unit)?;
                        ColumnValues::Times(ints)
                    }
                    None => ColumnValues::Ints(ints),
                }
            }
            Values::F32(_) | Values::F64(_) => {
                let floats = |cells: Values| match cells {
                    Values::F32(v) => Some(v.into_iter().map(f64::from).collect()),
                    Values::F64(v) => Some(v),
                    _ => None,
                };
                ColumnValues::Floats(self.scalars(&mut missing, floats)?)
            }
            Values::Text(_) => ColumnValues::Texts(self.texts(&mut missing)?),
        };
        Ok((values, missing.flags))
    }

    /// Calls `f` with the cells of each group and the number of its first row, from 1.
    fn groups(
        &self,
        mut f: impl FnMut(Cells, usize) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        for group in self.file.groups() {
            let first = self.file.first_row(group)?;
            if first > self.rows {
                break;
            }
            f(self.file.read(group, self.column)?, first)?;
        }
        Ok(())
    }

    fn other_type(&self) -> DataError {
        self.file.refuse(self.column, "values of one type")
    }

    /// Numbers or booleans, with the default at missing rows.
    fn scalars<T: Copy + Default>(
        &self,
        missing: &mut Missing,
        typed: impl Fn(Values) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, DataError> {
        let mut out: Vec<T> = vec![];
        self.groups(|cells, first| {
            let rows = cells.rows();
            missing.add(cells.present.as_deref(), rows);
            let values = typed(cells.values).ok_or_else(|| self.other_type())?;
            if first == 1 && cells.present.is_none() && values.len() >= self.rows {
                out = values;
                return Ok(());
            }
            if first == 1 {
                // The file's number of rows was compared with its length when it was opened.
                out.reserve_exact(self.rows);
            }
            match &cells.present {
                None => out.extend_from_slice(&values),
                Some(present) => {
                    let mut values = values.into_iter();
                    let value = |&p: &bool| if p { values.next() } else { None };
                    out.extend(present.iter().map(value).map(Option::unwrap_or_default));
                }
            }
            Ok(())
        })?;
        out.truncate(self.rows);
        missing.truncate(self.rows);
        Ok(out)
    }

    fn texts(&self, missing: &mut Missing) -> Result<Texts, DataError> {
        let (mut text, mut ends) = (String::new(), vec![]);
        self.groups(|cells, first| {
            let rows = cells.rows();
            missing.add(cells.present.as_deref(), rows);
            let Values::Text(values) = &cells.values else { return Err(self.other_type()) };
            text.reserve(values.iter().map(ByteArray::len).sum());
            ends.reserve(rows);
            let mut values = values.iter();
            for row in 0..rows {
                if cells.present.as_ref().is_none_or(|p| p[row]) {
                    let bytes = values.next().map(ByteArray::data).unwrap_or_default();
                    text.push_str(self.utf8(bytes, first + row)?);
                }
                ends.push(text.len());
            }
            Ok(())
        })?;
        ends.truncate(self.rows);
        text.truncate(ends.last().copied().unwrap_or(0));
        missing.truncate(self.rows);
        if text.capacity() / 5 * 4 > text.len() {
            text.shrink_to_fit();
        }
        Ok(Texts::from_parts(text, ends).unwrap_or_default())
    }

    fn utf8<'b>(&self, bytes: &'b [u8], row: usize) -> Result<&'b str, DataError> {
        std::str::from_utf8(bytes).map_err(|_| {
            let why = format!(
                "column `{}`, row {row}: expected UTF-8 text, found other bytes; write the column as text, or skip it with `DatabaseOptions::with_ignored`",
                self.name
            );
            format_error(self.path, why)
        })
    }

    fn lists(&self, missing: &mut Missing) -> Result<ListColumn, DataError> {
        let (mut indptr, mut end) = (vec![0u64], 0u64);
        let mut values = match self.file.no_rows(self.column)?.values {
            Values::Int(_) => ListValues::Ints(vec![]),
            Values::F32(_) | Values::F64(_) => ListValues::Floats(vec![]),
            Values::Text(_) => ListValues::Texts(Texts::new()),
        };
        self.groups(|cells, first| {
            let flip = |nulls: &Vec<bool>| nulls.iter().map(|n| !n).collect();
            let present: Option<Vec<bool>> = cells.null_lists.as_ref().map(flip);
            missing.add(present.as_deref(), cells.rows());
            for &len in cells.lists.iter().flatten() {
                end += u64::from(len);
                indptr.push(end);
            }
            match (&mut values, cells.values) {
                (ListValues::Ints(to), Values::Int(v)) => to.extend(v),
                (ListValues::Floats(to), Values::F32(v)) => to.extend(v.into_iter().map(f64::from)),
                (ListValues::Floats(to), Values::F64(v)) => to.extend(v),
                (ListValues::Texts(to), Values::Text(v)) => {
                    for bytes in &v {
                        to.push(self.utf8(bytes.data(), first)?);
                    }
                }
                _ => return Err(self.other_type()),
            }
            Ok(())
        })?;
        let lists = ListColumn::new(indptr, values).map_err(|_| self.other_type())?;
        missing.truncate(self.rows);
        if lists.len() <= self.rows {
            return Ok(lists);
        }
        let rows: Vec<u32> = (0..self.rows as u32).collect();
        Ok(lists.select(&rows))
    }

    /// Converts times from a unit of so many nanoseconds to microseconds, rounded down.
    fn microseconds(&self, times: &mut [i64], nanoseconds: i64) -> Result<(), DataError> {
        if nanoseconds < 1000 {
            times.iter_mut().for_each(|t| *t = t.div_euclid(1000));
            return Ok(());
        }
        let factor = nanoseconds / 1000;
        for (row, time) in times.iter_mut().enumerate() {
            let Some(micros) = time.checked_mul(factor) else {
                let why = format!(
                    "column `{}`, row {}: expected a time that fits 64 bits in microseconds, found {time} units; correct the value",
                    self.name,
                    row + 1
                );
                return Err(format_error(self.path, why));
            };
            *time = micros;
        }
        Ok(())
    }
}

/// Flags of missing rows; none before the first missing row.
struct Missing {
    rows: usize,
    flags: Option<Vec<bool>>,
}

impl Missing {
    fn add(&mut self, present: Option<&[bool]>, rows: usize) {
        if self.flags.is_some() || present.is_some() {
            let before = self.rows;
            let flags = self.flags.get_or_insert_with(|| vec![false; before]);
            match present {
                Some(present) => flags.extend(present.iter().map(|p| !p)),
                None => flags.resize(before + rows, false),
            }
        }
        self.rows += rows;
    }
    fn truncate(&mut self, rows: usize) {
        if let Some(flags) = &mut self.flags {
            flags.truncate(rows);
        }
        self.rows = self.rows.min(rows);
    }
}
