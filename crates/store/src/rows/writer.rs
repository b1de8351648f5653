//! Writes files of feature rows in chunks.

use std::path::{Path, PathBuf};

use super::format::RowFormat;
use super::header::{ROWS, header};
use crate::error::{StoreError, format as wrong};
use crate::section_writer::SectionWriter;

/// Writes the rows of a file in order, in chunks of any size. The file appears under its name when it is complete; a
/// writer that is dropped before leaves no file.
///
/// See [`StoredRows`](crate::StoredRows).
#[derive(Debug)]
pub struct RowWriter {
    path: PathBuf,
    out: SectionWriter,
    rows: usize,
    width: usize,
    format: RowFormat,
    put: usize,
    bytes: Vec<u8>,
}

impl RowWriter {
    /// Creates a file of `rows` rows of `width` numbers.
    ///
    /// # Errors
    /// `rows` or `width` exceeds the limits of a file; [`StoreError::Data`] if the file cannot be written.
    pub fn create(
        path: impl AsRef<Path>,
        rows: usize,
        width: usize,
        format: RowFormat,
    ) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let out = SectionWriter::replace(path, header(path, rows, width, format)?)?;
        Ok(Self { path: path.into(), out, rows, width, format, put: 0, bytes: vec![] })
    }

    /// Appends complete rows.
    ///
    /// # Errors
    /// Incomplete rows; more rows than declared; a number that is not finite in an integer format;
    /// [`StoreError::Data`].
    pub fn put(&mut self, numbers: &[f32]) -> Result<(), StoreError> {
        let rows = numbers.len().checked_div(self.width).unwrap_or(0);
        if rows * self.width != numbers.len() || self.put + rows > self.rows {
            let why = format!(
                "expected whole rows of {}, at most {} more, found {} numbers",
                self.width,
                self.rows - self.put,
                numbers.len()
            );
            return Err(wrong(&self.path, why));
        }
        self.bytes.clear();
        for (i, row) in numbers.chunks_exact(self.width.max(1)).enumerate() {
            self.format.encode(row, &mut self.bytes).map_err(|column| {
                let why = format!(
                    "row {}, column {column}: expected a finite number for {:?}, found {}",
                    self.put + i,
                    self.format,
                    row[column]
                );
                wrong(&self.path, why)
            })?;
        }
        self.put += rows;
        self.out.put(0, &self.bytes)
    }

    /// Appends `rows` rows in the stored format. The caller must not exceed the declared number of rows.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8], rows: usize) -> Result<(), StoreError> {
        debug_assert_eq!(bytes.len(), rows * self.format.row_bytes(self.width));
        self.put += rows;
        self.out.put(0, bytes)
    }

    /// Completes and renames the file, and returns its length.
    ///
    /// # Errors
    /// Fewer rows than declared; [`StoreError::Data`].
    pub fn finish(self) -> Result<u64, StoreError> {
        if self.put != self.rows && self.width > 0 {
            return Err(wrong(
                &self.path,
                format!("`{ROWS}`: expected {} rows, found {}", self.rows, self.put),
            ));
        }
        self.out.finish(&[])
    }
}
