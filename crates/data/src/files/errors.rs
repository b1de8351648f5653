//! Constructors of [`DataError`]s.

use std::path::Path;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::{Cut, cut_quoted, format_error, io_error};
use burn_gnn_graph::GraphError;

/// Error for an invalid argument.
pub(crate) fn setting(arg: &'static str, expected: &str, found: &str) -> DataError {
    DataError::Graph(GraphError::Setting {
        arg,
        expected: expected.to_owned(),
        found: found.to_owned(),
    })
}

/// Error for an unknown node type.
pub(crate) fn unknown_ntype(
    name: &str,
    known: impl IntoIterator<Item = impl Into<String>>,
) -> DataError {
    let known = known.into_iter().map(Into::into).collect();
    DataError::Graph(GraphError::UnknownNodeType { name: name.to_owned(), known })
}

/// Error for a name that occurs twice.
pub(crate) fn duplicate(what: &'static str, name: impl Into<String>) -> DataError {
    DataError::Graph(GraphError::Duplicate { what, name: name.into() })
}

/// Error for contradictory settings of a decoder.
pub(crate) fn decoder_error(argument: impl Into<String>, message: impl Into<String>) -> DataError {
    DataError::Decoder { argument: argument.into(), message: message.into() }
}

/// Error for a file or data set whose cargo feature is not enabled.
#[cfg(not(all(feature = "npz", feature = "rdf", feature = "zstd")))]
pub(crate) fn missing_feature(what: impl std::fmt::Display, feature: &'static str) -> DataError {
    DataError::Feature { what: what.to_string(), feature }
}

/// The expected content of a field of a table.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) what: String,
    /// The setting to change if the file is right; empty if only the file can be changed.
    pub(crate) remedy: &'static str,
}

impl Expected {
    /// Adds the name of the column.
    pub(crate) fn of_column(self, name: &str) -> Self {
        Self { what: format!("{} (`{name}`)", self.what), ..self }
    }
    /// Adds the position of an entry of a list, from 0.
    pub(crate) fn of_entry(self, i: usize) -> Self {
        Self { what: format!("{} as entry {i}", self.what), ..self }
    }
    /// Replaces the remedy.
    pub(crate) fn or(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }
}

impl From<String> for Expected {
    fn from(what: String) -> Self {
        Self { what, remedy: "" }
    }
}

impl From<&str> for Expected {
    fn from(what: &str) -> Self {
        what.to_owned().into()
    }
}

/// Creates a [`DataError::Table`].
pub(crate) fn table_error(
    path: &Path,
    line: u64,
    column: usize,
    expected: impl Into<Expected>,
    found: impl Into<Cut>,
) -> DataError {
    let Expected { what, remedy } = expected.into();
    DataError::Table {
        path: path.into(),
        line,
        column,
        expected: cut_quoted(what),
        found: found.into().0,
        remedy,
    }
}

/// Removes the remedy from a table error, for readers whose format the caller cannot change.
pub(crate) fn without_remedy(e: DataError) -> DataError {
    match e {
        DataError::Table { path, line, column, expected, found, .. } => {
            DataError::Table { path, line, column, expected, found, remedy: "" }
        }
        DataError::Problems { problems } => {
            DataError::Problems { problems: problems.into_iter().map(without_remedy).collect() }
        }
        other => other,
    }
}

/// Converts an I/O error of a text reader. An error with a source comes from a decompressor, so it is about the content.
pub(crate) fn text_error(path: &Path, e: std::io::Error) -> DataError {
    if e.get_ref().is_some() { format_error(path, e.to_string()) } else { io_error(path, e) }
}
