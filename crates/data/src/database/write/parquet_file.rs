//! Writes columns of a database to a Parquet file.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use burn_gnn_files::{AtomicFile, DataError};
use burn_gnn_graph::Texts;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::database::column::{ColumnValues, DatabaseColumn, ListValues};
use crate::files::io_error;

/// Rows per group.
const GROUP: usize = 1 << 17;

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut AtomicFile>;

/// Writes columns of equal length.
pub(super) fn write_columns(path: &Path, columns: &[&DatabaseColumn]) -> Result<(), DataError> {
    let failed = |e: ParquetError| io_error(path, io::Error::other(e));
    let mut file = AtomicFile::create(path).map_err(|e| io_error(path, e))?;
    let fields: Result<Vec<_>, _> = columns.iter().map(|c| field(c).map(Arc::new)).collect();
    let schema = Type::group_type_builder("schema").with_fields(fields.map_err(failed)?);
    let schema = schema.build().map_err(failed)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties))
        .map_err(failed)?;
    let rows = columns.first().map_or(0, |c| c.len());
    for from in (0..rows).step_by(GROUP) {
        let mut group = writer.next_row_group().map_err(failed)?;
        for column in columns {
            write_rows(&mut group, column, from..rows.min(from + GROUP)).map_err(failed)?;
        }
        group.close().map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    file.commit().map_err(|e| io_error(path, e))
}

/// The schema of a column; nullable if values are missing.
fn field(column: &DatabaseColumn) -> Result<Type, ParquetError> {
    let repetition =
        if column.missing().is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let primitive = |name: &str, physical, logical, repetition| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    };
    let list = |physical, logical| {
        let element = primitive("element", physical, logical, Repetition::REQUIRED)?;
        let entries = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![Arc::new(element)])
            .build()?;
        Type::group_type_builder(column.name())
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(entries)])
            .build()
    };
    let text = Some(LogicalType::String);
    let time = Some(LogicalType::timestamp(false, TimeUnit::MICROS));
    let one = |physical, logical| primitive(column.name(), physical, logical, repetition);
    match column.values() {
        ColumnValues::Ints(_) => one(Physical::INT64, None),
        ColumnValues::Floats(_) => one(Physical::DOUBLE, None),
        ColumnValues::Texts(_) => one(Physical::BYTE_ARRAY, text),
        ColumnValues::Times(_) => one(Physical::INT64, time),
        ColumnValues::Bools(_) => one(Physical::BOOLEAN, None),
        ColumnValues::Vectors { .. } => list(Physical::FLOAT, None),
        ColumnValues::Lists(lists) => match lists.values() {
            ListValues::Ints(_) => list(Physical::INT64, None),
            ListValues::Floats(_) => list(Physical::DOUBLE, None),
            ListValues::Texts(_) => list(Physical::BYTE_ARRAY, text),
        },
    }
}

fn write_rows(
    group: &mut Group<'_, '_>,
    column: &DatabaseColumn,
    rows: Range<usize>,
) -> Result<(), ParquetError> {
    let missing = column.missing().map(|m| &m[rows.clone()]);
    match column.values() {
        ColumnValues::Ints(v) | ColumnValues::Times(v) => {
            write_values::<Int64Type>(group, &v[rows], missing)
        }
        ColumnValues::Floats(v) => write_values::<DoubleType>(group, &v[rows], missing),
        ColumnValues::Bools(v) => write_values::<BoolType>(group, &v[rows], missing),
        ColumnValues::Texts(v) => {
            write_values::<ByteArrayType>(group, &byte_arrays(v, rows), missing)
        }
        ColumnValues::Vectors { width, values } => {
            let lengths = rows.clone().map(|_| *width);
            let values = &values[rows.start * width..rows.end * width];
            write_lists::<FloatType>(group, values, lengths, missing)
        }
        ColumnValues::Lists(lists) => {
            let entries = lists.indptr()[rows.start] as usize..lists.indptr()[rows.end] as usize;
            let lengths = rows.map(|row| lists.row_len(row));
            match lists.values() {
                ListValues::Ints(v) => {
                    write_lists::<Int64Type>(group, &v[entries], lengths, missing)
                }
                ListValues::Floats(v) => {
                    write_lists::<DoubleType>(group, &v[entries], lengths, missing)
                }
                ListValues::Texts(v) => {
                    let values = byte_arrays(v, entries);
                    write_lists::<ByteArrayType>(group, &values, lengths, missing)
                }
            }
        }
    }
}

fn byte_arrays(texts: &Texts, rows: Range<usize>) -> Vec<ByteArray> {
    rows.map(|row| ByteArray::from(texts.get(row))).collect()
}

fn write_values<T: DataType>(
    group: &mut Group<'_, '_>,
    values: &[T::T],
    missing: Option<&[bool]>,
) -> Result<(), ParquetError> {
    let Some(missing) = missing else { return write_column::<T>(group, values, None, None) };
    let levels: Vec<i16> = missing.iter().map(|m| i16::from(!m)).collect();
    let present = values.iter().zip(missing).filter(|(_, missing)| !**missing);
    let present: Vec<T::T> = present.map(|(value, _)| value.clone()).collect();
    write_column::<T>(group, &present, Some(&levels), None)
}

/// Writes lists of these lengths; `values` contains the values of missing rows too.
fn write_lists<T: DataType>(
    group: &mut Group<'_, '_>,
    values: &[T::T],
    lengths: impl Iterator<Item = usize>,
    missing: Option<&[bool]>,
) -> Result<(), ParquetError> {
    // Levels of a null, of an empty list and of a value.
    let [null, empty, value] = if missing.is_some() { [0, 1, 2] } else { [0, 0, 1] };
    let (mut defined, mut repeated, mut present) = (vec![], vec![], vec![]);
    let mut at = 0;
    for (row, length) in lengths.enumerate() {
        let list = &values[at..at + length];
        at += length;
        repeated.push(0);
        if missing.is_some_and(|m| m[row]) {
            defined.push(null);
        } else if list.is_empty() {
            defined.push(empty);
        } else {
            repeated.resize(repeated.len() + length - 1, 1);
            defined.resize(defined.len() + length, value);
            present.extend_from_slice(list);
        }
    }
    write_column::<T>(group, &present, Some(&defined), Some(&repeated))
}

fn write_column<T: DataType>(
    group: &mut Group<'_, '_>,
    values: &[T::T],
    defined: Option<&[i16]>,
    repeated: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".into()))?;
    column.typed::<T>().write_batch(values, defined, repeated)?;
    column.close()
}
