//! Files of feature rows.

mod format;
mod header;
mod stored_rows;
mod writer;

pub use format::RowFormat;
pub(crate) use header::WIDEST;
pub use stored_rows::StoredRows;
pub use writer::RowWriter;
