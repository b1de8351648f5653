//! Reads a Parquet file that DGL's tools wrote as one array.

use std::path::Path;

use burn_gnn_files::DataError;

use super::cells::{Cells, Values};
use super::file::ParquetFile;
use crate::arrays::npy::{NpyArray, NpyValues};
use crate::files::decompression_limit::MAX_EXPANSION;
use crate::files::{cut, format_error};

/// Reads the columns of a file, which must have one type, as the columns of a matrix, or a single column of lists of equal
/// length as its rows. The key `shape` of the metadata, such as `(10, 2, 3)`, sets another shape. Whole numbers become i64.
pub(crate) fn read_parquet_array(path: &Path) -> Result<NpyArray, DataError> {
    let file = ParquetFile::open(path, MAX_EXPANSION)?;
    let names = file.names();
    if names.is_empty() {
        return Err(format_error(path, "expected at least one column, found none"));
    }
    let mut groups = vec![];
    for group in file.groups() {
        let columns: Vec<Cells> =
            (0..names.len()).map(|c| file.read(group, c)).collect::<Result<_, _>>()?;
        for (c, cells) in columns.iter().enumerate() {
            if cells.present.is_some() {
                return Err(file.refuse(c, "values without nulls"));
            }
            if cells.lists.is_some() && names.len() > 1 {
                return Err(file.refuse(c, "plain columns, or one column of lists"));
            }
        }
        groups.push((file.rows(group)?, columns));
    }
    if groups.is_empty() {
        groups.push((0, (0..names.len()).map(|c| file.no_rows(c)).collect::<Result<_, _>>()?));
    }
    let rows: usize = groups.iter().map(|g| g.0).sum();
    let mut width = names.len();
    if file.is_list(0) {
        let mut lengths = groups.iter().flat_map(|g| g.1[0].lists.iter().flatten());
        width = lengths.next().map_or(0, |&n| n as usize);
        if let Some(other) = lengths.find(|&&n| n as usize != width) {
            return Err(format_error(
                path,
                format!(
                    "expected lists of {width} values as in the first row, found one of {other}"
                ),
            ));
        }
    }
    macro_rules! matrix {
        ($kind:ident, $as:ident) => {{
            let mut values = vec![];
            for (rows, columns) in &groups {
                let columns: Vec<_> = columns
                    .iter()
                    .map(|c| if let Values::$kind(v) = &c.values { Some(v) } else { None })
                    .collect();
                let Some(columns) = columns.into_iter().collect::<Option<Vec<_>>>() else {
                    return Err(format_error(
                        path,
                        "expected columns of one type, found several; convert them",
                    ));
                };
                match columns.as_slice() {
                    [one] => values.extend_from_slice(one),
                    several => (0..*rows).for_each(|r| values.extend(several.iter().map(|c| c[r]))),
                }
            }
            NpyValues::$as(values)
        }};
    }
    let values = match groups.first().map(|g| &g.1[0].values) {
        Some(Values::Int(_)) => matrix!(Int, I64),
        Some(Values::F64(_)) => matrix!(F64, F64),
        Some(Values::F32(_)) => matrix!(F32, F32),
        None => NpyValues::F32(vec![]),
        Some(Values::Text(_)) => return Err(file.refuse(0, "numbers")),
    };
    let shape = match file.note("shape") {
        None => vec![rows, width],
        Some(note) => shape(note, rows * width).ok_or_else(|| {
            let why = format!(
                "shape: expected axes of {} values in all such as `(2, 3)`, found `{}`",
                rows * width,
                cut(note)
            );
            format_error(path, why)
        })?,
    };
    Ok(NpyArray { path: path.into(), shape, values })
}

/// Parses a shape, a tuple in Python's notation, if it has an axis and as many values.
fn shape(note: &str, values: usize) -> Option<Vec<usize>> {
    let inside = note.trim().strip_prefix('(')?.strip_suffix(')')?;
    let inside = inside.trim().strip_suffix(',').unwrap_or(inside);
    let axes: Vec<usize> =
        inside.split(',').map(|axis| axis.trim().parse().ok()).collect::<Option<_>>()?;
    let product = axes.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis))?;
    (product == values).then_some(axes)
}
