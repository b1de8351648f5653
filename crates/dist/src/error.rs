//! Errors of this crate.

use std::path::PathBuf;

use burn_gnn_files::DataError;
use burn_gnn_files::internal::cut_quoted;
use burn_gnn_graph::GraphError;

use crate::comm::Failure;

/// Errors of partitionings, their files and distributed runs.
///
/// Variants hold data. The message names the argument, the expected and the found value, and the remedy.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum DistError {
    /// A setting is invalid.
    #[error("`{arg}`: expected {expected}, got {found}")]
    Config {
        /// Name of the setting.
        arg: &'static str,
        /// Valid values.
        expected: String,
        /// The value.
        found: String,
    },
    /// More parts than nodes.
    #[error(
        "`num_parts`: expected at most {nodes} (one part per node), got {parts}; use fewer parts"
    )]
    TooManyParts {
        /// Requested number of parts.
        parts: usize,
        /// Number of nodes of all types.
        nodes: usize,
    },
    /// More nodes or edges than the partitioner can number.
    #[error(
        "{count} {what} exceed the {limit} that METIS can number; use a streaming method, `PartitionMethod::Ldg` or `PartitionMethod::Fennel`, or a custom assignment"
    )]
    TooLarge {
        /// `nodes` or `edges (both directions)`, for example.
        what: &'static str,
        /// The count found.
        count: u64,
        /// The largest count allowed.
        limit: u64,
    },
    /// METIS failed.
    #[error(
        "METIS failed on {nodes} nodes, {edges} edges, {parts} parts: {message}; use another `PartitionMethod`"
    )]
    Metis {
        /// Number of nodes.
        nodes: usize,
        /// Number of undirected edges, without self loops and parallel edges.
        edges: usize,
        /// Requested number of parts.
        parts: usize,
        /// The message of METIS.
        message: String,
    },
    /// A custom assignment does not match the graph.
    #[error("assignment of node type `{ntype}`{}: expected {expected}, got {found}", position.map_or(String::new(), |p| format!(", node {p}")))]
    Assignment {
        /// Node type.
        ntype: String,
        /// Node whose entry is wrong; `None` if the list is.
        position: Option<usize>,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An id, type or part is out of range.
    #[error("{what} {id} is out of range 0..{bound}; number them from 0")]
    OutOfRange {
        /// Kind of the id.
        what: String,
        /// The id.
        id: u64,
        /// Exclusive upper bound.
        bound: u64,
    },
    /// A local id was requested in a part that does not own the node or edge.
    #[error("{what} {id} belongs to part {owner}, not to part {part}; use part {owner}")]
    NotOwned {
        /// Which numbering.
        what: String,
        /// The type-wise id.
        id: u64,
        /// The requested part.
        part: usize,
        /// The part that owns the node or edge.
        owner: usize,
    },
    /// A range of ids was requested, but ids were not reshuffled, so the ids of a part are not a range.
    #[error(
        "part {part} has no contiguous range of {what} ids: the graph was partitioned without reshuffling; use `nids_of_part` or `eids_of_part`"
    )]
    KeptIds {
        /// `node` or `edge`.
        what: String,
        /// The requested part.
        part: usize,
    },
    /// A rank opened a part of another rank.
    #[error(
        "rank {rank} of {size} cannot take part {part} of {num_parts}: rank `i` of `num_parts` ranks takes part `i`{}; \
         start one rank per part, and open the part of each rank",
        if *trainers > 1 { format!(", or part `i / {trainers}` of `num_parts · {trainers}` ranks, where trainers share parts of a `DistGraph`") } else { String::new() }
    )]
    WrongRank {
        /// This rank.
        rank: usize,
        /// Number of ranks.
        size: usize,
        /// The opened part.
        part: usize,
        /// Number of parts.
        num_parts: usize,
        /// Number of trainers per part.
        trainers: usize,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// File.
        path: PathBuf,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A file has invalid content: it is truncated, has wrong lengths, or has ids out of range.
    #[error("{}: {message}", path.display())]
    Format {
        /// File.
        path: PathBuf,
        /// The problem, with the expected and the found value.
        message: String,
    },
    /// A file has another version of the format.
    #[error("{}: format version {found}, this program reads version {expected}; partition the graph again", path.display())]
    Version {
        /// File.
        path: PathBuf,
        /// Version of the file.
        found: String,
        /// Version that this crate reads.
        expected: u32,
    },
    /// A file does not match its checksum: it is damaged, or belongs to another partitioning.
    #[error("{}: expected checksum {expected} as in the metadata, found {found}; the file was changed or damaged: partition the graph again", path.display())]
    Checksum {
        /// File.
        path: PathBuf,
        /// Checksum in the metadata.
        expected: String,
        /// Checksum of the file.
        found: String,
    },
    /// A file of a part belongs to another partitioning than the metadata, because the folder was partly overwritten.
    #[error("{}: belongs to partitioning {found}, the metadata to {expected}; partition the graph again", path.display())]
    Mixed {
        /// File.
        path: PathBuf,
        /// Fingerprint of the metadata.
        expected: String,
        /// Fingerprint of the file.
        found: String,
    },
    /// There is no edge between a pair of nodes.
    #[error(
        "relation `{relation}`, position {position}: there is no edge {src} -> {dst}; `in_subgraph` lists the edges into a node"
    )]
    NoSuchEdge {
        /// Name of the relation.
        relation: String,
        /// Index of the pair.
        position: usize,
        /// Source, by type-wise id.
        src: u64,
        /// Destination, by type-wise id.
        dst: u64,
    },
    /// The graph does not have a partition policy of this name.
    #[error(
        "no partition policy `{policy}`: there is one policy per type of the graph; use one of {known:?}"
    )]
    UnknownPolicy {
        /// The requested policy, `node~type` or `edge~src:relation:dst`.
        policy: String,
        /// All policies of the graph.
        known: Vec<String>,
    },
    /// A tensor was created without a policy, and its first dimension does not determine one.
    #[error(
        "tensor `{name}`: {} {rows} rows{}; name the policy",
        if candidates.is_empty() { "no type of the graph has" } else { "several types of the graph have" },
        if candidates.is_empty() { String::new() } else { format!(": {candidates:?}") }
    )]
    Policy {
        /// Name of the tensor.
        name: String,
        /// First dimension of the tensor.
        rows: u64,
        /// Policies with this number of rows.
        candidates: Vec<String>,
    },
    /// A checkpoint does not match the run that loads it.
    #[error("{}: made with {what} {found}, this run has {expected}; {remedy}", path.display())]
    Checkpoint {
        /// Path of the manifest.
        path: PathBuf,
        /// Name of the property that differs.
        what: &'static str,
        /// Value of this run.
        expected: String,
        /// Value of the checkpoint.
        found: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The models of ranks are not replicas.
    #[error(
        "{what} on rank {rank}: expected {expected} as on rank 0, found {found}; ranks would train different models: call \
         `broadcast_module` before the first step, or make the model on every rank in \
         `seeded(broadcast_seed(&comm)?, || …)`, which makes dropout keys equal too"
    )]
    Replicas {
        /// The difference: a parameter, by its path of field names, or the number of parameters.
        what: String,
        /// The first rank that differs from rank 0.
        rank: usize,
        /// Value on rank 0.
        expected: String,
        /// Value on this rank.
        found: String,
    },
    /// The structure or a frame is invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A file of a graph or of features is invalid.
    #[error(transparent)]
    Data(Box<DataError>),
    /// A collective call failed, because some rank has failed.
    #[error(transparent)]
    Rank(#[from] Failure),
}

burn_gnn_graph::internal::debug_is_message!(DistError);

impl From<DataError> for DistError {
    fn from(e: DataError) -> Self {
        match e {
            DataError::Graph(e) => Self::Graph(e),
            other => Self::Data(Box::new(other)),
        }
    }
}

impl DistError {
    /// An error of the content of a file. Quoted texts are truncated.
    pub(crate) fn format(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::Format { path: path.into(), message: cut_quoted(message.into()) }
    }
    /// Converts an error of a file.
    pub(crate) fn of_file(e: DataError) -> Self {
        match e {
            DataError::Io { path, source } => Self::Io { path, source },
            DataError::Format { path, message } => Self::Format { path, message },
            other => other.into(),
        }
    }
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

#[cfg(test)]
mod tests {
    /// Every `Result` has room for an error, so large errors slow down the success path.
    #[test]
    fn errors_are_small() {
        println!("{} {}", size_of::<burn_gnn_graph::GraphError>(), size_of::<super::DistError>());
        assert!(size_of::<super::DistError>() < 129);
    }
}
