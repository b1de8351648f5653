//! Opens Parquet files and decodes their columns.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn_gnn_files::DataError;
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{DataType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor, Type};

use super::cells::{Cells, Values};
use super::pages;
use super::value_type::{
    ValueType, big_endian, decimals, nanoseconds, time_unit, type_name, unsigned_32,
};
use crate::files::decompression_limit::expansion_limit;
use crate::files::{Expected, format_error, open, within_limit};

/// Rows per call of the decoder.
const BATCH: usize = 1 << 13;
/// Bytes that are reserved before values are read, for each byte of the column in the file. The number of rows is not
/// trusted.
const MOST_ROOM: usize = 4;
/// Bytes of a decoded value.
const CELL: u64 = 8;

/// A Parquet file whose metadata was read.
#[derive(Debug)]
pub(crate) struct ParquetFile {
    path: PathBuf,
    metadata: ParquetMetaData,
    len: u64,
    max_expansion: u32,
}

impl ParquetFile {
    /// Reads the metadata at the end of a file. Values may take at most `max_expansion` times the length of the file.
    pub(crate) fn open(path: &Path, max_expansion: u32) -> Result<Self, DataError> {
        let (file, len) = open(path)?;
        let metadata = guarded(path, || {
            ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|e| wrong(path, &e))
        })?;
        let file = Self { path: path.into(), metadata, len, max_expansion };
        let rows = file
            .groups()
            .map(|g| file.rows(g))
            .try_fold(0u64, |sum, rows| Ok::<_, DataError>(sum.saturating_add(rows? as u64)))?;
        within_limit(path.display(), "rows", rows)?;
        let limit = expansion_limit(len, max_expansion);
        if rows.saturating_mul(CELL) > limit {
            let why = format!(
                "expected rows of at most {limit} bytes, found {rows} rows; raise `max_expansion`"
            );
            return Err(format_error(path, why));
        }
        Ok(file)
    }

    pub(crate) fn groups(&self) -> std::ops::Range<usize> {
        0..self.metadata.num_row_groups()
    }

    /// Rows of a group.
    pub(crate) fn rows(&self, group: usize) -> Result<usize, DataError> {
        let rows = self.metadata.row_group(group).num_rows();
        usize::try_from(rows).map_err(|_| {
            format_error(
                &self.path,
                format!("row group {group}: expected a number of rows, found {rows}"),
            )
        })
    }

    /// The leaves of the schema.
    fn columns(&self) -> &[ColumnDescPtr] {
        self.metadata.file_metadata().schema_descr().columns()
    }

    /// Names of the columns. Elements of a list have the name of the list, other nested columns a path with dots.
    pub(crate) fn names(&self) -> Vec<String> {
        self.columns().iter().map(|c| self.name(c)).collect()
    }

    fn name(&self, column: &ColumnDescriptor) -> String {
        let root = self.metadata.file_metadata().schema_descr().root_schema();
        column_name(root, column.path().parts())
    }

    /// Whether a column contains texts.
    pub(crate) fn is_text(&self, column: usize) -> bool {
        matches!(ValueType::of(&self.columns()[column]), Ok(ValueType::Text))
    }

    /// Whether a column contains booleans.
    pub(crate) fn is_bool(&self, column: usize) -> bool {
        matches!(ValueType::of(&self.columns()[column]), Ok(ValueType::Bool))
    }

    /// Nanoseconds of the unit of a column of dates or timestamps; `None` for another column.
    pub(crate) fn time_unit(&self, column: usize) -> Option<i64> {
        time_unit(&self.columns()[column])
    }

    /// Whether a column has a list in every row.
    pub(crate) fn is_list(&self, column: usize) -> bool {
        self.columns()[column].max_rep_level() > 0
    }

    /// The value of a key of the metadata.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        notes.iter().find(|n| n.key == key)?.value.as_deref()
    }

    /// A column without rows.
    pub(crate) fn no_rows(&self, column: usize) -> Result<Cells, DataError> {
        let ty = ValueType::of(&self.columns()[column]).map_err(|e| self.refuse(column, e))?;
        let lists = self.is_list(column).then(Vec::new);
        Ok(Cells { values: ty.no_values(), present: None, lists, null_lists: None })
    }

    /// The number of the first row of a group, from 1.
    pub(crate) fn first_row(&self, group: usize) -> Result<usize, DataError> {
        (0..group).try_fold(1usize, |sum, g| Ok(sum.saturating_add(self.rows(g)?)))
    }

    /// Decodes the values of a column in a group of rows.
    pub(crate) fn read(&self, group: usize, column: usize) -> Result<Cells, DataError> {
        guarded(&self.path, || self.decode(group, column))
    }

    fn decode(&self, group: usize, column: usize) -> Result<Cells, DataError> {
        let (rows, wrong) = (self.rows(group)?, |e: ParquetError| wrong(&self.path, &e));
        let groups = self.metadata.row_group(group);
        if groups.num_columns() != self.columns().len() {
            return Err(format_error(
                &self.path,
                format!("row group {group}: expected the columns of the schema, found others"),
            ));
        }
        let chunk = groups.column(column);
        if rows == 0 {
            return match chunk.num_values() {
                // Writers give such a chunk invalid positions.
                0 => self.no_rows(column),
                found => Err(format_error(
                    &self.path,
                    format!("row group {group}: expected no values in no rows, found {found}"),
                )),
            };
        }
        pages::check(&self.path, self.len, chunk, self.max_expansion)?;
        // Opened again, since reads move the position of a shared handle.
        let file = Arc::new(open(&self.path)?.0);
        let pages = SerializedPageReader::new(file, chunk, rows, None).map_err(wrong)?;
        let about = &self.columns()[column];
        let refused = |expected: Expected| self.refuse(column, expected);
        let ty = ValueType::of(about).map_err(refused)?;
        let stored = usize::try_from(chunk.compressed_size()).unwrap_or(0);
        let mut levels = Levels::new(about, rows, self.first_row(group)?, stored);
        let values = match get_column_reader(chunk.column_descr_ptr(), Box::new(pages)) {
            ColumnReader::BoolColumnReader(r) => {
                Values::Int(levels.all(r).map_err(wrong)?.into_iter().map(i64::from).collect())
            }
            ColumnReader::Int32ColumnReader(r) => {
                let values = levels.all(r).map_err(wrong)?;
                match ty {
                    ValueType::Unsigned(bits) => unsigned_32(values, bits).map_err(refused)?,
                    ValueType::Decimal(scale) => {
                        let whole = values.into_iter().map(|v| Ok(i128::from(v)));
                        decimals(whole, scale).map_err(refused)?
                    }
                    _ => Values::Int(values.into_iter().map(i64::from).collect()),
                }
            }
            ColumnReader::Int64ColumnReader(r) => {
                let values = levels.all(r).map_err(wrong)?;
                match ty {
                    ValueType::Unsigned(_) if values.iter().any(|&v| v < 0) => {
                        let expected =
                            Expected::from("numbers below 2^63").or("cast it to int64 or text");
                        return Err(refused(expected));
                    }
                    ValueType::Decimal(scale) => {
                        let whole = values.into_iter().map(|v| Ok(i128::from(v)));
                        decimals(whole, scale).map_err(refused)?
                    }
                    _ => Values::Int(values),
                }
            }
            ColumnReader::Int96ColumnReader(r) => {
                nanoseconds(&levels.all(r).map_err(wrong)?).map_err(refused)?
            }
            ColumnReader::FloatColumnReader(r) => Values::F32(levels.all(r).map_err(wrong)?),
            ColumnReader::DoubleColumnReader(r) => Values::F64(levels.all(r).map_err(wrong)?),
            ColumnReader::ByteArrayColumnReader(r) => {
                let values = levels.all(r).map_err(wrong)?;
                match ty {
                    ValueType::Decimal(scale) => {
                        let whole = values.iter().map(|v| big_endian(v.data()));
                        decimals(whole, scale).map_err(refused)?
                    }
                    _ => Values::Text(values),
                }
            }
            ColumnReader::FixedLenByteArrayColumnReader(r) => {
                let values = levels.all(r).map_err(wrong)?;
                match ty {
                    ValueType::Decimal(scale) => {
                        let whole = values.iter().map(|v| big_endian(v.data()));
                        decimals(whole, scale).map_err(refused)?
                    }
                    _ => {
                        let half = |v: &FixedLenByteArray| {
                            let bits = <[u8; 2]>::try_from(v.data());
                            bits.map(|bits| half::f16::from_le_bytes(bits).to_f32())
                        };
                        let values: Result<_, _> = values.iter().map(half).collect();
                        Values::F32(values.map_err(|_| refused("two bytes per value".into()))?)
                    }
                }
            }
        };
        levels.finish(values).map_err(|expected| self.refuse(column, expected))
    }

    /// An error about a column.
    pub(crate) fn refuse(&self, column: usize, expected: impl Into<Expected>) -> DataError {
        let Expected { what, remedy } = expected.into();
        let about = &self.columns()[column];
        let (name, found) = (self.name(about), type_name(about));
        let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
        format_error(&self.path, format!("column `{name}`: expected {what}, found {found}{remedy}"))
    }
}

/// The name of a leaf, without the levels inside a list (`list.element`, `bag.array_element`).
fn column_name(root: &Type, parts: &[String]) -> String {
    let mut node = root;
    for (i, part) in parts.iter().enumerate() {
        let Some(child) = node.get_fields().iter().find(|f| f.name() == part) else { break };
        node = child;
        let about = node.get_basic_info();
        let list = about.converted_type() == ConvertedType::LIST
            || about.logical_type_ref() == Some(&LogicalType::List)
            || about.has_repetition() && about.repetition() == Repetition::REPEATED;
        // A list of structures has a column for each of their fields.
        if list && has_one_leaf(node) {
            return parts[..=i].join(".");
        }
    }
    parts.join(".")
}

fn has_one_leaf(node: &Type) -> bool {
    let mut node = node;
    while node.is_group() {
        let [child] = node.get_fields() else { return false };
        node = child;
    }
    true
}

fn wrong(path: &Path, e: &ParquetError) -> DataError {
    format_error(path, format!("expected a Parquet file: {e}"))
}

/// Runs the decoder, which panics at some damaged files, and converts a panic to an error. No value that the decoder was
/// working on is used afterwards.
fn guarded<T>(path: &Path, decode: impl FnOnce() -> Result<T, DataError>) -> Result<T, DataError> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format_error(
            path,
            format!(
                "expected a Parquet file, found damage at which the decoder stopped: {}",
                text.unwrap_or("no reason")
            ),
        ))
    })
}

/// Definition and repetition levels of a column that is being read.
struct Levels {
    rows: usize,
    /// Number of the first row, from 1.
    first: usize,
    max: (i16, i16),
    /// Whether a value inside a list may be null.
    nullable: bool,
    defined: Vec<i16>,
    repeated: Vec<i16>,
    /// Whether each row has a value; `None` before the first null.
    present: Option<Vec<bool>>,
    /// Bytes of the values in the file.
    stored: usize,
}

impl Levels {
    fn new(column: &ColumnDescriptor, rows: usize, first: usize, stored: usize) -> Self {
        let about = column.self_type().get_basic_info();
        let nullable = about.has_repetition() && about.repetition() == Repetition::OPTIONAL;
        Self {
            rows,
            first,
            max: (column.max_def_level(), column.max_rep_level()),
            nullable,
            defined: vec![],
            repeated: vec![],
            present: None,
            stored,
        }
    }

    fn all<T: DataType>(
        &mut self,
        mut reader: ColumnReaderImpl<T>,
    ) -> Result<Vec<T::T>, ParquetError> {
        let room = self.stored / size_of::<T::T>() * MOST_ROOM;
        let (mut values, mut done) = (Vec::with_capacity(room.min(self.rows)), 0);
        while done < self.rows {
            let (defined, repeated) = (
                (self.max.0 > 0).then_some(&mut self.defined),
                (self.max.1 > 0).then_some(&mut self.repeated),
            );
            let (records, found, _) =
                reader.read_records(BATCH.min(self.rows - done), defined, repeated, &mut values)?;
            if records == 0 {
                return Err(ParquetError::General(format!("{} rows, found {done}", self.rows)));
            }
            if self.max.0 > 0 && self.max.1 == 0 {
                // Most columns have no nulls, so their levels are not kept.
                if self.present.is_some() || found < records {
                    let here = self.defined.iter().map(|&level| level == self.max.0);
                    self.present.get_or_insert_with(|| vec![true; done]).extend(here);
                }
                self.defined.clear();
            }
            done += records;
        }
        Ok(values)
    }

    /// Combines values and levels. The error is the expected value.
    fn finish(self, values: Values) -> Result<Cells, String> {
        let (defined, repeated) = self.max;
        let here = |level: &i16| *level == defined;
        let held = match (repeated, &self.present) {
            (0, Some(present)) => present.iter().filter(|&&p| p).count(),
            (0, None) => self.rows,
            _ => self.defined.iter().filter(|l| here(l)).count(),
        };
        if values.len() != held {
            return Err(format!("{held} values"));
        }
        match repeated {
            0 => Ok(Cells { values, present: self.present, lists: None, null_lists: None }),
            1 => {
                let mut lengths: Vec<u32> = Vec::with_capacity(self.rows);
                // An empty list has the level before that of its elements; a null has a lower one.
                let empty = defined - 1 - i16::from(self.nullable);
                let mut nulls: Option<Vec<bool>> = None;
                for (d, r) in self.defined.iter().zip(&self.repeated) {
                    if *r == 0 {
                        let null = *d < empty;
                        if null || nulls.is_some() {
                            let before = lengths.len();
                            nulls.get_or_insert_with(|| vec![false; before]).push(null);
                        }
                        lengths.push(0);
                    }
                    match lengths.last_mut() {
                        Some(length) if here(d) => *length += 1,
                        // An empty list, a null list and a null inside a list are each one level without a value.
                        Some(0) if *r == 0 && *d + i16::from(self.nullable) < defined => {}
                        _ => {
                            let row = self.first + lengths.len() - 1;
                            return Err(format!("lists without nulls in row {row}"));
                        }
                    }
                }
                Ok(Cells { values, present: None, lists: Some(lengths), null_lists: nulls })
            }
            _ => Err("lists that are not nested".into()),
        }
    }
}
