//! Writes tables as CSV.

use std::io::{self, Write};
use std::ops::Range;

use burn_gnn_files::DataError;

use super::table::{Cells, Numbers, Table, TableColumn, joined};
use crate::files::write_atomic;

/// Rows per copy to the host.
const PART: usize = 4096;

pub(super) fn write(table: &Table<'_>) -> Result<(), DataError> {
    let mut failed = None;
    let written = write_atomic(table.path, |file| {
        let mut out = ::csv::Writer::from_writer(io::BufWriter::with_capacity(1 << 18, file));
        out.write_record(table.names()).map_err(io::Error::other)?;
        for from in (0..table.rows).step_by(PART) {
            let rows = from..table.rows.min(from + PART);
            write_rows(table, rows, &mut out, &mut failed)?;
        }
        out.flush()
    });
    // The error of a column says more than the I/O error that it was converted to.
    match failed {
        Some(e) => Err(e),
        None => written,
    }
}

fn write_rows<W: Write>(
    table: &Table<'_>,
    rows: Range<usize>,
    out: &mut ::csv::Writer<W>,
    failed: &mut Option<DataError>,
) -> io::Result<()> {
    let numbers = |column: &TableColumn<'_>| match column.cells {
        Cells::Column(c) => table.numbers(&column.key, c, rows.clone()).map(Some),
        _ => Ok(None),
    };
    let numbers = match table.columns.iter().map(numbers).collect::<Result<Vec<_>, _>>() {
        Ok(numbers) => numbers,
        Err(e) => {
            *failed = Some(e);
            return Err(io::Error::other("a column that cannot be written"));
        }
    };
    let mut record = ::csv::StringRecord::new();
    for row in rows.clone() {
        record.clear();
        for (TableColumn { cells, .. }, numbers) in table.columns.iter().zip(&numbers) {
            let entries =
                (row - rows.start) * cells.width()..(row - rows.start + 1) * cells.width();
            match (cells, numbers) {
                (_, Some(Numbers::F32(v))) => push(&mut record, &v[entries]),
                (_, Some(Numbers::F64(v))) => push(&mut record, &v[entries]),
                (_, Some(Numbers::I64(v))) => push(&mut record, &v[entries]),
                // Written as numbers, which every reader of tables accepts.
                (_, Some(Numbers::Bool(v))) => {
                    v[entries].iter().for_each(|&x| record.push_field(if x { "1" } else { "0" }))
                }
                (Cells::Ids(ids), None) => record.push_field(&ids.get(row).to_string()),
                (Cells::Texts(texts), None) => record.push_field(texts.get(row)),
                (Cells::List(list), None) => record.push_field(&joined(list.row(row))),
                (Cells::Column(_), None) => unreachable!("columns were copied"),
            }
        }
        out.write_record(&record).map_err(io::Error::other)?;
    }
    Ok(())
}

fn push<T: ToString>(record: &mut ::csv::StringRecord, numbers: &[T]) {
    numbers.iter().for_each(|x| record.push_field(&x.to_string()));
}
