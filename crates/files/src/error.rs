//! Defines the errors of files, data sets and the graphs in them.

use std::path::{Path, PathBuf};

use burn_gnn_structure::GraphError;

use crate::truncate::cut_quoted;

/// What can be wrong with files, with data sets, and with the graphs in them.
///
/// Variants hold data, not prose, so that a program can react to them; the message names the file, what was expected,
/// what was found and, where there is one, the remedy.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// What was read makes no graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A format whose cargo feature is off.
    #[error("`{what}` needs the cargo feature `{feature}`; build with `--features {feature}`")]
    Feature {
        /// File or data set.
        what: String,
        /// Feature of `burn-gnn`.
        feature: &'static str,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A file's content is not what its format asks for.
    #[error("{}: {message}", path.display())]
    Format {
        /// File.
        path: PathBuf,
        /// What is wrong, with the expected and the found value.
        message: String,
    },
    /// A file whose content makes no graph: an error that does not name a file by itself, and the one it came from.
    #[error("{}: {}", path.display(), cut_quoted(source.to_string()))]
    InFile {
        /// File.
        path: PathBuf,
        /// What is wrong.
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
    /// A row of a text table is wrong.
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
        /// Column (field), from 1; 0 for the whole line.
        column: usize,
        /// What was expected.
        expected: String,
        /// The text found, cut to a sensible length.
        found: String,
        /// What to do where the file is right; empty where nothing but the file can be changed.
        remedy: &'static str,
    },
    /// Several things that are wrong with one source; there may be more behind them.
    #[error("{} problems (there may be more):{}", problems.len(), problems.iter().map(|p| format!("\n  {p}")).collect::<String>())]
    Problems {
        /// In the order of the rows.
        problems: Vec<DataError>,
    },
    /// Files of a published data set that are not on disk.
    #[error(
        "data set `{set}`: missing files: {}; copy them there, or set BURN_GNN_DATA to the parent folder of `{set}`, {remedy}",
        files.iter().map(|(name, url)| format!("{} (from {url})", dir.join(name).display())).collect::<Vec<_>>().join(", ")
    )]
    DataMissing {
        /// Name of the set.
        set: &'static str,
        /// Its folder.
        dir: PathBuf,
        /// What is missing in it, and where that is.
        files: Vec<(&'static str, &'static str)>,
        /// What to do otherwise.
        remedy: &'static str,
    },
    /// A transfer that failed.
    #[error("{url}: {message}")]
    Download {
        /// Address.
        url: String,
        /// What happened, with the expected and the found value.
        message: String,
    },
    /// Shares of a split that do not go together, or ask for more nodes than there are.
    #[error("split, `{arg}`: {message}")]
    Split {
        /// Which share.
        arg: &'static str,
        /// What is wrong, with the expected and the found value.
        message: String,
    },
    /// A description of attributes that contradicts itself.
    #[error("decoder, `{argument}`: {message}")]
    Decoder {
        /// Which part of the decoder.
        argument: String,
        /// What is wrong, with the expected and the found value.
        message: String,
    },
}

burn_gnn_structure::debug_is_message!(DataError);

/// The column in a message, none for the whole line.
fn of_column(column: usize) -> String {
    if column > 0 { format!("{column}:") } else { String::new() }
}

impl DataError {
    /// The same error with the file that it came from, unless it names one.
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
    /// The error without the file that [`InFile`](Self::InFile) adds to it.
    pub fn cause(&self) -> &Self {
        if let Self::InFile { source, .. } = self { source } else { self }
    }
}
