//! Headers of files of feature rows.

use std::path::Path;

use super::format::RowFormat;
use crate::error::{StoreError, format as wrong};
use crate::sections::Header;

/// Kind of the files, and name of their section.
pub(super) const KIND: &str = "rows";
pub(super) const ROWS: &str = "rows";

/// Maximal feature size.
pub(crate) const WIDEST: u64 = 1 << 28;

/// Size of the rows in bytes; an error if it exceeds the limits of a file.
pub(super) fn size(
    path: &Path,
    rows: u64,
    width: u64,
    format: RowFormat,
) -> Result<u64, StoreError> {
    let each =
        usize::try_from(width).ok().filter(|_| width <= WIDEST).map(|w| format.row_bytes(w) as u64);
    let bytes =
        each.and_then(|each| each.checked_mul(rows)).filter(|_| rows <= u64::from(u32::MAX));
    bytes.ok_or_else(|| {
        let most = u32::MAX;
        wrong(path, format!("expected at most {most} rows of {WIDEST} numbers, found {rows} rows of {width}; split the features"))
    })
}

pub(super) fn header(
    path: &Path,
    rows: usize,
    width: usize,
    format: RowFormat,
) -> Result<Header, StoreError> {
    let format_value =
        serde_json::to_value(format).unwrap_or_else(|e| unreachable!("a plain name: {e}"));
    let mut header =
        Header::new(KIND).with("rows", rows).with("width", width).with("format", format_value);
    header.section(ROWS, size(path, rows as u64, width as u64, format)?);
    Ok(header)
}
