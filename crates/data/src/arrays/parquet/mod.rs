//! Reads untrusted Parquet files, column by column.
//!
//! The crate `parquet` decodes. Before it does, the sizes that a file declares are compared with its length, since a few
//! bytes can declare gigabytes. The crate panics at some damaged pages, such as dictionary codes without a dictionary;
//! these panics are caught and become errors.

pub(crate) mod array;
pub(crate) mod cells;
pub(crate) mod file;
mod pages;
#[cfg(test)]
mod tests;
mod value_type;
