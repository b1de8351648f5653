//! Errors of graphs and features in files.

use std::path::{Path, PathBuf};

use burn_gnn_files::DataError;
use burn_gnn_structure::GraphError;

/// Errors of graphs and features in files.
///
/// Variants hold data instead of text, so that a program can react to them.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read or written, or has another format.
    #[error(transparent)]
    Data(Box<DataError>),
    /// The data is not a valid graph.
    #[error(transparent)]
    Graph(Box<GraphError>),
    /// A block of a file does not match its checksum.
    #[error(
        "{}: block {block} of `{section}`: expected checksum {expected:016x}, found {found:016x}; the file was changed or damaged \
         after it was written: build it again",
        path.display()
    )]
    Damaged {
        /// File.
        path: PathBuf,
        /// Section of the file.
        section: String,
        /// Number of the block in the section.
        block: u64,
        /// Checksum in the file.
        expected: u64,
        /// Checksum of the bytes.
        found: u64,
    },
    /// The length of a file differs from the length in its header.
    #[error(
        "{}: expected {expected} bytes, found {found}; the file was cut short or is still being copied; \
         wait for the copy, or build it again",
        path.display()
    )]
    Truncated {
        /// File.
        path: PathBuf,
        /// Length in the header.
        expected: u64,
        /// Actual length.
        found: u64,
    },
    /// An endpoint of an edge is out of range.
    #[error(
        "edge {edge}: `{arg}` must lie in 0..{bound}, got {value}; number nodes from 0, or build a graph of more nodes"
    )]
    NodeOutOfRange {
        /// Position of the edge in the stream.
        edge: u64,
        /// `src` or `dst`.
        arg: &'static str,
        /// Number of nodes.
        bound: u64,
        /// The endpoint.
        value: u64,
    },
    /// The memory is smaller than the minimal buffers of an operation.
    #[error("`memory`: {what} needs at least {least} bytes, got {given}; allow more")]
    Memory {
        /// The operation.
        what: &'static str,
        /// Minimal memory in bytes.
        least: u64,
        /// Memory that was allowed.
        given: u64,
    },
    /// The folder contains unfinished work with other settings.
    #[error(
        "{}: expected to resume {expected}, found {found}; remove the folder to start over",
        path.display()
    )]
    Resume {
        /// Folder of the unfinished work.
        path: PathBuf,
        /// Settings of the call.
        expected: String,
        /// Settings of the unfinished work.
        found: String,
    },
    /// Another process is building the same file.
    #[error("{}: another process is building here; wait for it, or build elsewhere", path.display())]
    Busy {
        /// Folder of the work.
        path: PathBuf,
    },
    /// The in-edges of a node are in another part.
    #[error(
        "{}: node {node} of type `{ntype}`: expected an inner node of part {part}, found {}; request it from the rank of its part",
        path.display(), owner.map_or_else(|| "none of its nodes".to_owned(), |p| format!("a halo node, which is in part {p}"))
    )]
    OtherPart {
        /// File of the part's nodes.
        path: PathBuf,
        /// Node type.
        ntype: String,
        /// Original id.
        node: u32,
        /// The part that was read.
        part: u32,
        /// The part that owns the node, if it is a halo node of this part.
        owner: Option<u32>,
    },
    /// An error of an input stream.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
}

burn_gnn_structure::debug_is_message!(StoreError);

impl StoreError {
    /// Converts the error of an input stream.
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
