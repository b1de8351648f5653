//! Defines [`DataError`].

use std::path::{Path, PathBuf};

use burn_gnn_structure::GraphError;

use crate::truncate::cut_quoted;

/// Errors of files, of data sets, and of the graphs in them.
///
/// Variants hold data, not prose, so that a program can react to them. The message names the file, the expected and the
/// found value and, if there is one, the remedy.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The content of the files is not a valid graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A format whose cargo feature is disabled.
    #[error("`{what}` needs the cargo feature `{feature}`; build with `--features {feature}`")]
    Feature {
        /// File or data set.
        what: String,
        /// Feature of `burn-gnn`.
        feature: &'static str,
    },
    /// Reading or writing a file failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The content of a file does not follow its format.
    #[error("{}: {message}", path.display())]
    Format {
        /// File.
        path: PathBuf,
        /// The expected and the found value.
        message: String,
    },
    /// An error that does not name a file, with the file that caused it.
    #[error("{}: {}", path.display(), cut_quoted(source.to_string()))]
    InFile {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: Box<DataError>,
    },
    /// A file was written by another version of the format.
    #[error(
        "{}: format version {found}, this program reads version {expected}; write it again with this version of the library",
        path.display()
    )]
    Version {
        /// File.
        path: PathBuf,
        /// Version found.
        found: String,
        /// Version this program reads.
        expected: u32,
    },
    /// An invalid row of a table.
    #[error(
        "{}:{line}:{} expected {expected}, got {found:?}{}{remedy}",
        path.display(),
        of_column(*column),
        if remedy.is_empty() { "" } else { "; " }
    )]
    Table {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// Field, from 1; 0 for the whole line.
        column: usize,
        /// What was expected.
        expected: String,
        /// The found text, truncated.
        found: String,
        /// An option of the reader that accepts the row; empty if only the file can be changed.
        remedy: &'static str,
    },
    /// Several invalid rows of one source; later rows may be invalid as well.
    #[error("{} problems (there may be more):{}", problems.len(), problems.iter().map(|p| format!("\n  {p}")).collect::<String>())]
    Problems {
        /// In the order of the rows.
        problems: Vec<DataError>,
    },
    /// Missing files of a published data set.
    #[error(
        "data set `{set}`: missing files: {}; copy them there, or set BURN_GNN_DATA to the parent folder of `{set}`, {remedy}",
        files.iter().map(|(name, url)| format!("{} (from {url})", dir.join(name).display())).collect::<Vec<_>>().join(", ")
    )]
    DataMissing {
        /// Name of the set.
        set: &'static str,
        /// Its folder.
        dir: PathBuf,
        /// Missing files, each with its address.
        files: Vec<(&'static str, &'static str)>,
        /// An alternative, at the end of the message.
        remedy: &'static str,
    },
    /// A failed download.
    #[error("{url}: {message}")]
    Download {
        /// Address.
        url: String,
        /// The expected and the found value.
        message: String,
    },
    /// Shares of a split that contradict each other, or need more nodes than the graph has.
    #[error("split, `{arg}`: {message}")]
    Split {
        /// Name of the share.
        arg: &'static str,
        /// The expected and the found value.
        message: String,
    },
    /// Invalid content of a database: tables with keys and times.
    #[error(
        "{}: {message}",
        of_database(table, column, *row)
    )]
    Database {
        /// Table.
        table: String,
        /// Column, or columns joined by `+`; empty for the whole table.
        column: String,
        /// Row, from 1, without the header of a CSV file.
        row: Option<u64>,
        /// The expected and the found value, and what to change.
        message: String,
    },
    /// An invalid [`Decoder`](https://docs.rs/burn-gnn-data/latest/burn_gnn_data/struct.Decoder.html).
    #[error("decoder, `{argument}`: {message}")]
    Decoder {
        /// Part of the decoder.
        argument: String,
        /// The expected and the found value.
        message: String,
    },
}

burn_gnn_structure::debug_is_message!(DataError);

/// The field in a message; nothing for the whole line.
fn of_column(column: usize) -> String {
    if column > 0 { format!("{column}:") } else { String::new() }
}

/// The position in a database in a message.
fn of_database(table: &str, column: &str, row: Option<u64>) -> String {
    let mut parts = vec![];
    if !table.is_empty() || column.is_empty() {
        parts.push(format!("table `{table}`"));
    }
    if !column.is_empty() {
        parts.push(format!("column `{column}`"));
    }
    parts.extend(row.map(|row| format!("row {row}")));
    parts.join(", ")
}

impl DataError {
    /// Adds the file that caused the error, unless the error names a file.
    #[must_use]
    pub fn in_file(self, path: impl AsRef<Path>) -> Self {
        match self {
            Self::Io { .. }
            | Self::Format { .. }
            | Self::InFile { .. }
            | Self::Version { .. }
            | Self::Table { .. }
            | Self::Problems { .. }
            | Self::DataMissing { .. }
            | Self::Download { .. }
            | Self::Feature { .. } => self,
            other => Self::InFile { path: path.as_ref().into(), source: Box::new(other) },
        }
    }
    /// The error inside [`InFile`](Self::InFile), or the error itself.
    pub fn cause(&self) -> &Self {
        if let Self::InFile { source, .. } = self { source } else { self }
    }
}
