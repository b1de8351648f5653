//! Defines the errors of graphs and features in files.

use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_structure::GraphError;

/// What can be wrong with graphs and features in files.
///
/// Variants hold data, not prose, so that a program can react to them.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file could not be read or written, or is of another format.
    #[error(transparent)]
    Data(Box<DataError>),
    /// What was read makes no graph.
    #[error(transparent)]
    Graph(Box<GraphError>),
    /// A block of a file is not what was written.
    #[error(
        "{}: block {block} of `{section}`: expected checksum {expected:016x}, found {found:016x}; the file was changed or damaged \
         after it was written: build it again",
        path.display()
    )]
    Damaged {
        /// File.
        path: PathBuf,
        /// Part of the file.
        section: String,
        /// Number of the block in it.
        block: u64,
        /// Checksum in the file.
        expected: u64,
        /// Checksum of the bytes.
        found: u64,
    },
    /// A file is shorter or longer than its header says.
    #[error(
        "{}: expected {expected} bytes, found {found}; the file was cut short or is still being copied; \
         wait for the copy, or build it again",
        path.display()
    )]
    Truncated {
        /// File.
        path: PathBuf,
        /// Bytes by its header.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// An edge has an endpoint that is no node.
    #[error(
        "edge {edge}: `{arg}` must lie in 0..{bound}, got {value}; number nodes from 0, or build a graph of more nodes"
    )]
    NodeOutOfRange {
        /// Which edge of the stream.
        edge: u64,
        /// `src` or `dst`.
        arg: &'static str,
        /// Number of nodes.
        bound: u64,
        /// What was found.
        value: u64,
    },
    /// Less memory than the smallest buffers of a step take.
    #[error("`memory`: {what} needs at least {least} bytes, got {given}; allow more")]
    Memory {
        /// What is to be done.
        what: &'static str,
        /// The least that it takes.
        least: u64,
        /// What was allowed.
        given: u64,
    },
    /// Something else than what was begun is to be resumed.
    #[error(
        "{}: expected to resume {expected}, found {found}; remove the folder to start over",
        path.display()
    )]
    Resume {
        /// Folder of the work that was begun.
        path: PathBuf,
        /// What the call asks for.
        expected: String,
        /// What was begun.
        found: String,
    },
    /// Another process builds the same file.
    #[error("{}: another process is building here; wait for it, or build elsewhere", path.display())]
    Busy {
        /// Folder of the work.
        path: PathBuf,
    },
    /// In-edges are asked for that are in another part.
    #[error(
        "{}: node {node} of type `{ntype}`: expected an inner node of part {part}, found {}; ask the rank of its part",
        path.display(), owner.map_or_else(|| "none of its nodes".to_owned(), |p| format!("a halo node, which is in part {p}"))
    )]
    OtherPart {
        /// File of the part's nodes.
        path: PathBuf,
        /// Node type.
        ntype: String,
        /// Original id.
        node: u32,
        /// The part that was asked.
        part: u32,
        /// The part whose inner node it is, where this part knows it.
        owner: Option<u32>,
    },
    /// What a source of edges reports.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
}

burn_gnn_structure::debug_is_message!(StoreError);

impl StoreError {
    /// What a source of edges met.
    pub fn source(e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Source(e.into())
    }
}

impl From<DataError> for StoreError {
    fn from(e: DataError) -> Self {
        Self::Data(Box::new(e))
    }
}

impl From<GraphError> for StoreError {
    fn from(e: GraphError) -> Self {
        Self::Graph(Box::new(e))
    }
}

impl From<StoreError> for GraphError {
    fn from(e: StoreError) -> Self {
        match e {
            StoreError::Graph(e) => *e,
            other => Self::source(other),
        }
    }
}

pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| DataError::Io { path, source }.into()
}

pub(crate) fn format(path: &Path, message: impl Into<String>) -> StoreError {
    burn_gnn_files::internal::format_error(path, message).into()
}
