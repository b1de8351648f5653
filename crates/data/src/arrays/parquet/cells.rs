//! Defines the decoded values of a Parquet column.

use parquet::data_type::ByteArray;

/// The values of a column, without nulls.
#[derive(Debug, PartialEq)]
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
    fn cell(&self, i: usize) -> Cell<'_> {
        match self {
            Self::Int(v) => Cell::Int(v[i]),
            Self::F32(v) => Cell::F32(v[i]),
            Self::F64(v) => Cell::F64(v[i]),
            Self::Text(v) => Cell::Text(v[i].data()),
        }
    }
}

/// The rows of a column.
#[derive(Debug)]
pub(crate) struct Cells {
    pub(crate) values: Values,
    /// Whether each row has a value; `None`: all rows have one.
    pub(crate) present: Option<Vec<bool>>,
    /// Number of values of each row, if rows are lists. A null is an empty list.
    pub(crate) lists: Option<Vec<u32>>,
    /// Whether each row is a null instead of a list; `None` before the first null.
    pub(crate) null_lists: Option<Vec<bool>>,
}

/// One row of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    F32(f32),
    F64(f64),
    Text(&'a [u8]),
    List(ListCell<'a>),
}

/// The list of a row: a range of the values of its column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ListCell<'a> {
    values: &'a Values,
    start: usize,
    pub(crate) len: usize,
}

impl<'a> ListCell<'a> {
    /// The values, one by one.
    pub(crate) fn iter(self) -> impl Iterator<Item = Cell<'a>> {
        (self.start..self.start + self.len).map(|i| self.values.cell(i))
    }
}

impl Cells {
    pub(crate) fn rows(&self) -> usize {
        match (&self.lists, &self.present) {
            (Some(lists), _) => lists.len(),
            (None, Some(present)) => present.len(),
            (None, None) => self.values.len(),
        }
    }
    /// The rows in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Cell<'_>> {
        let mut next = 0;
        (0..self.rows()).map(move |row| {
            if let Some(lists) = &self.lists {
                let (start, len) = (next, lists[row] as usize);
                next += len;
                return Cell::List(ListCell { values: &self.values, start, len });
            }
            if self.present.as_ref().is_some_and(|p| !p[row]) {
                return Cell::Null;
            }
            next += 1;
            self.values.cell(next - 1)
        })
    }
}

impl<'a> Cell<'a> {
    /// The cell as text, empty for a null; numbers are formatted into `room`.
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
            Self::List(list) => write!(room, "a list of {}", list.len),
        };
        room.as_bytes()
    }
}
