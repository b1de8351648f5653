//! Writes tables as Parquet files.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use ::parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use burn::tensor::DType;
use burn_gnn_files::{AtomicFile, DataError};

use super::table::{Cells, Numbers, Table, TableColumn, joined};
use crate::files::io_error;

/// Rows per group.
const GROUP: usize = 1 << 16;

pub(super) fn write(table: &Table<'_>) -> Result<(), DataError> {
    let failed = |e: ParquetError| io_error(table.path, io::Error::other(e));
    let mut file = AtomicFile::create(table.path).map_err(|e| io_error(table.path, e))?;
    let fields = table.columns.iter().flat_map(|column| {
        let kind = kind(&column.cells);
        column.names.iter().map(move |name| field(name, kind).map(Arc::new))
    });
    let fields = fields.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(failed)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties))
        .map_err(failed)?;
    for from in (0..table.rows).step_by(GROUP) {
        let mut group = writer.next_row_group().map_err(failed)?;
        for TableColumn { key, cells, .. } in &table.columns {
            let rows = from..table.rows.min(from + GROUP);
            match cells {
                Cells::Column(c) => {
                    write_numbers(&mut group, &table.numbers(key, c, rows)?, cells.width())
                        .map_err(failed)?
                }
                _ => write_cells(&mut group, cells, rows).map_err(failed)?,
            }
        }
        group.close().map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    file.commit().map_err(|e| io_error(table.path, e))
}

/// The physical type of a column.
fn kind(cells: &Cells<'_>) -> PhysicalType {
    match cells {
        Cells::Ids(ids) if ids.is_text() => PhysicalType::BYTE_ARRAY,
        Cells::Texts(_) | Cells::List(_) => PhysicalType::BYTE_ARRAY,
        Cells::Ids(_) => PhysicalType::INT64,
        Cells::Column(c) => match c.dtype() {
            DType::F64 => PhysicalType::DOUBLE,
            DType::Bool(_) => PhysicalType::BOOLEAN,
            dtype if dtype.is_float() => PhysicalType::FLOAT,
            _ => PhysicalType::INT64,
        },
    }
}

fn field(name: &str, kind: PhysicalType) -> Result<Type, ParquetError> {
    let text = (kind == PhysicalType::BYTE_ARRAY).then_some(LogicalType::String);
    Type::primitive_type_builder(name, kind)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(text)
        .build()
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut AtomicFile>;

fn write_column<T: DataType>(
    group: &mut Group<'_, '_>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".into()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

/// Writes rows of `width` numbers as columns.
fn write_numbers(
    group: &mut Group<'_, '_>,
    numbers: &Numbers,
    width: usize,
) -> Result<(), ParquetError> {
    fn nth<T: Copy>(values: &[T], j: usize, width: usize) -> Vec<T> {
        values.iter().skip(j).step_by(width).copied().collect()
    }
    (0..width).try_for_each(|j| match numbers {
        Numbers::F32(v) => write_column::<FloatType>(group, &nth(v, j, width)),
        Numbers::F64(v) => write_column::<DoubleType>(group, &nth(v, j, width)),
        Numbers::I64(v) => write_column::<Int64Type>(group, &nth(v, j, width)),
        Numbers::Bool(v) => write_column::<BoolType>(group, &nth(v, j, width)),
    })
}

fn write_cells(
    group: &mut Group<'_, '_>,
    cells: &Cells<'_>,
    rows: Range<usize>,
) -> Result<(), ParquetError> {
    let texts = |text: &dyn Fn(usize) -> String| {
        rows.clone().map(|row| ByteArray::from(text(row).into_bytes())).collect::<Vec<_>>()
    };
    match cells {
        Cells::Ids(ids) if !ids.is_text() => {
            write_column::<Int64Type>(group, &rows.map(|row| ids.number(row)).collect::<Vec<_>>())
        }
        Cells::Ids(ids) => {
            write_column::<ByteArrayType>(group, &texts(&|row| ids.get(row).to_string()))
        }
        Cells::Texts(of) => {
            write_column::<ByteArrayType>(group, &texts(&|row| of.get(row).to_owned()))
        }
        Cells::List(of) => write_column::<ByteArrayType>(group, &texts(&|row| joined(of.row(row)))),
        Cells::Column(_) => unreachable!("columns are written as numbers"),
    }
}
