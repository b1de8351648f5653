//! Converts the values of a Parquet column to a few types.

use parquet::data_type::ByteArray;

/// Values without nulls.
#[derive(Debug)]
pub(crate) enum Values {
    Int(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    /// Bytes that should be UTF-8.
    Text(Vec<ByteArray>),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Text(v) => v.len(),
        }
    }
}

/// The rows of a column.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) values: Values,
    /// Which rows have a value; `None`: all.
    pub(crate) present: Option<Vec<bool>>,
    /// How many values each row has, where rows are lists.
    pub(crate) lists: Option<Vec<u32>>,
}

/// One row of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    F32(f32),
    F64(f64),
    Text(&'a [u8]),
}

impl Cells {
    /// Row after row, for columns that are not lists.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Cell<'_>> {
        let mut next = 0;
        let rows = self.present.as_ref().map_or(self.values.len(), Vec::len);
        (0..rows).map(move |row| {
            if self.present.as_ref().is_some_and(|p| !p[row]) {
                return Cell::Null;
            }
            next += 1;
            match &self.values {
                Values::Int(v) => Cell::Int(v[next - 1]),
                Values::F32(v) => Cell::F32(v[next - 1]),
                Values::F64(v) => Cell::F64(v[next - 1]),
                Values::Text(v) => Cell::Text(v[next - 1].data()),
            }
        })
    }
}

impl<'a> Cell<'a> {
    /// The text that a file of text would hold, nothing for a null; `room` holds that of numbers.
    pub(crate) fn text(self, room: &'a mut String) -> &'a [u8] {
        use std::fmt::Write;
        room.clear();
        // Writing to a string does not fail.
        let _ = match self {
            Self::Null => Ok(()),
            Self::Int(v) => write!(room, "{v}"),
            Self::F32(v) => write!(room, "{v}"),
            Self::F64(v) => write!(room, "{v}"),
            Self::Text(bytes) => return bytes,
        };
        room.as_bytes()
    }
}
